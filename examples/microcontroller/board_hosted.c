/* Linux, for the same program on other processors. */
#include <stdio.h>

#include "board.h"

void board_put(const char* text) { fputs(text, stdout); }
void board_exit(void) {}
void board_paint_stack(void) {}
uint32_t board_stack_used(void) { return 0; }
