/* A bare Cortex-M: vector table, start-up, text by semihosting. No operating system, no heap. */
#include "board.h"

extern uint32_t data_from[], data_begin[], data_end[], bss_begin[], bss_end[], stack_bottom[],
    stack_top[];
extern int main(void);

static int semihosting(int operation, const void* argument) {
  register int r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void board_put(const char* text) { semihosting(0x04, text); }

void board_exit(void) { semihosting(0x18, (const void*)0x20026); }

#define PAINT 0xc0ffee11u

void board_paint_stack(void) {
  uint32_t here;
  for (uint32_t* p = stack_bottom; p < &here - 64; ++p) *p = PAINT;
}

uint32_t board_stack_used(void) {
  const uint32_t* p = stack_bottom;
  while (p < stack_top && *p == PAINT) ++p;
  return (uint32_t)((const char*)stack_top - (const char*)p);
}

void reset(void) {
#ifdef __ARM_FP
  *(volatile uint32_t*)0xe000ed88 |= 0xfu << 20; /* the floating-point unit on */
  __asm__ volatile("dsb\n isb");
#endif
  for (uint32_t *to = data_begin, *from = data_from; to < data_end;) *to++ = *from++;
  for (uint32_t* p = bss_begin; p < bss_end;) *p++ = 0;
  main();
  for (;;) board_exit();
}

static void fault(void) {
  board_put("fault\n");
  for (;;) board_exit();
}

__attribute__((section(".vectors"), used)) static const void* const vectors[] = {
    stack_top,          (const void*)reset, (const void*)fault, (const void*)fault,
    (const void*)fault, (const void*)fault, (const void*)fault};
