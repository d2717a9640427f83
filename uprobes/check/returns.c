// SPDX-License-Identifier: GPL-2.0
/*
 * Call a function that returns in four places, as those of Go do, so often as the argument
 * says. Each return has a name, for tracers. The exit status is 0 if all results are right.
 */
#include <stdlib.h>

long choose(long number);

asm(".macro name symbol\n"
    "	.globl \\symbol\n"
    "	.type \\symbol, @function\n"
    "	.size \\symbol, 1\n"
    "\\symbol:\n"
    ".endm\n"
    "name choose\n"
    "	endbr64\n"
    "	.byte 0x0f, 0x1f, 0x44, 0, 0\n"
    "	mov %rdi, %rax\n"
    "	and $3, %eax\n"
    "	jz choose_0\n"
    "	dec %eax\n"
    "	jz 1f\n"
    "	dec %eax\n"
    "	jz 2f\n"
    "	mov $30, %eax\n"
    "name choose_3\n"
    "	ret\n"
    "1:	mov $10, %eax\n"
    "name choose_1\n"
    "	ret\n"
    "2:	mov $20, %eax\n"
    "name choose_2\n"
    "	ret\n"
    "name choose_0\n"
    "	ret\n");

int main(int argc, char **argv)
{
	const long calls = argc > 1 ? atol(argv[1]) : 1;
	long i;

	for (i = 0; i < calls; i++)
		if (choose(i) != i % 4 * 10)
			return 1;
	return 0;
}
