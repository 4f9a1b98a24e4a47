/* Operators of one's own, as an example: functions of the numbers of one row. The test builds them with
 *
 *   clang --target=wasm32 -O2 -mno-bulk-memory -nostdlib -Wl,--no-entry -o features.wasm features.c
 *
 * and vectors.json has known answers. Drives run the functions once an image with the module is active:
 *
 *   millrace image build --stock --wasm features.wasm --vectors features=vectors.json --out features.mimg
 *   millrace image load file:d0.flash features.mimg --activate */

#define OPERATOR(name) __attribute__((export_name(#name))) name

/* add_and_clamp adds two counts, and bounds the sum to 0 to 1000. */
long long OPERATOR(add_and_clamp)(long long a, long long b) {
  long long sum = (long long)((unsigned long long)a + (unsigned long long)b);
  return sum < 0 ? 0 : sum > 1000 ? 1000 : sum;
}

/* ratio divides clicks by views. Nothing by nothing is the canonical NaN, on every machine. */
float OPERATOR(ratio)(float clicks, float views) { return clicks / views; }

/* The digits of an id lie in memory, and the next row finds the memory as it was at first. */
static unsigned char digits[20];

/* digit_sum adds the decimal digits of an id. */
long long OPERATOR(digit_sum)(long long id) {
  unsigned long long rest = id < 0 ? 0 - (unsigned long long)id : (unsigned long long)id;
  int n = 0;
  while (rest > 0) {
    digits[n++] = rest % 10;
    rest /= 10;
  }
  long long sum = 0;
  for (int i = 0; i < 20; i++)
    sum += digits[i];
  return sum;
}

/* per_view divides a sum by the views of a row, and traps where there are none. */
long long OPERATOR(per_view)(long long sum, long long views) { return sum / views; }
