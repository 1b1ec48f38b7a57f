/* What the program needs of a machine: somewhere to write text, and how much stack was used. */
#pragma once
#include <stdint.h>

void board_put(const char* text);
void board_exit(void);
void board_paint_stack(void);
uint32_t board_stack_used(void);
