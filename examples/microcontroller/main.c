/* Trains, and says so: the loss of every step as a decimal number and as the bits of its float.
 * training.h is written by make.py: rows of data, the state, and train_step(). */
#include "board.h"
#include "training.h"

static void put_number(uint32_t n) {
  char text[12];
  int at = 11;
  text[at] = 0;
  do text[--at] = (char)('0' + n % 10);
  while (n /= 10);
  board_put(text + at);
}

static void put_bits(float value) {
  union {
    float f;
    uint32_t bits;
  } u = {value};
  char text[9];
  for (int k = 0; k < 8; ++k) text[k] = "0123456789abcdef"[u.bits >> (28 - 4 * k) & 15];
  text[8] = 0;
  board_put(text);
}

int main(void) {
  float loss[1];
  board_paint_stack();
  for (int k = 0; k < STEPS; ++k) {
    train_step((k * BATCH) % ROWS, k & 1, loss);
    board_put("step ");
    put_number((uint32_t)k);
    board_put(" loss ");
    put_number((uint32_t)(loss[0] * 1e6f));
    board_put("e-6 bits ");
    put_bits(loss[0]);
    board_put("\n");
  }
  board_put("stack ");
  put_number(board_stack_used());
  board_put(" bytes\n");
  board_exit();
  return 0;
}
