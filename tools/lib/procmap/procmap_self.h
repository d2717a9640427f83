/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * procmap_self(): find the mapping of the calling process that covers an address.
 *
 * A runtime may copy this file, which needs no other, no libc and no library. It allocates
 * nothing, has no state, leaves errno alone, and takes at most 512 bytes of stack (768 if it is
 * not optimized): a signal handler may call it, or an allocator that holds its lock.
 * procmap_self(3) has an example.
 */
#ifndef PROCMAP_SELF_H
#define PROCMAP_SELF_H

#include <stdint.h>

/* The permissions of a mapping. */
enum procmap_self_flags {
	PROCMAP_SELF_READABLE	= 0x01,
	PROCMAP_SELF_WRITABLE	= 0x02,
	PROCMAP_SELF_EXECUTABLE	= 0x04,
	PROCMAP_SELF_SHARED	= 0x08,
};

struct procmap_self_mapping {
	uint64_t start;		/* first address */
	uint64_t end;		/* first address past it */
	uint64_t offset;	/* of start in the file, in bytes; 0 without a file */
	uint64_t inode;		/* of the file, or 0 */
	uint32_t dev_major;	/* of the file's device, or 0 */
	uint32_t dev_minor;
	uint32_t flags;		/* enum procmap_self_flags */
};

/* Numbers of system calls; procmap_self_raw_call() makes one and returns -errno on failure. */
#if defined(__x86_64__) && !defined(__ILP32__)
enum {
	PROCMAP_SELF_OPENAT = 257, PROCMAP_SELF_READ = 0,
	PROCMAP_SELF_IOCTL = 16, PROCMAP_SELF_CLOSE = 3,
};

static inline long procmap_self_raw_call(long nr, long a, long b, long c)
{
	__asm__ __volatile__("syscall" : "+a"(nr) : "D"(a), "S"(b), "d"(c)
			     : "rcx", "r11", "cc", "memory");
	return nr;
}
#elif defined(__i386__)
enum {
	PROCMAP_SELF_OPENAT = 295, PROCMAP_SELF_READ = 3,
	PROCMAP_SELF_IOCTL = 54, PROCMAP_SELF_CLOSE = 6,
};

/* In position-independent code, EBX may be the compiler's own. */
static inline long procmap_self_raw_call(long nr, long a, long b, long c)
{
	__asm__ __volatile__("xchgl %%ebx, %%edi\n\tint $0x80\n\txchgl %%ebx, %%edi"
			     : "+a"(nr) : "D"(a), "c"(b), "d"(c) : "cc", "memory");
	return nr;
}
#elif defined(__aarch64__) && !defined(__ILP32__)
enum {
	PROCMAP_SELF_OPENAT = 56, PROCMAP_SELF_READ = 63,
	PROCMAP_SELF_IOCTL = 29, PROCMAP_SELF_CLOSE = 57,
};

static inline long procmap_self_raw_call(long nr, long a, long b, long c)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;

	__asm__ __volatile__("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "cc", "memory");
	return x0;
}
#elif defined(__arm__) && defined(__ARM_EABI__)
enum {
	PROCMAP_SELF_OPENAT = 322, PROCMAP_SELF_READ = 3,
	PROCMAP_SELF_IOCTL = 54, PROCMAP_SELF_CLOSE = 6,
};

/* In Thumb code, r7 may be the frame pointer. */
static inline long procmap_self_raw_call(long nr, long a, long b, long c)
{
	register long r0 __asm__("r0") = a;
	register long r1 __asm__("r1") = b;
	register long r2 __asm__("r2") = c;
	register long r3 __asm__("r3") = nr;

	__asm__ __volatile__("mov ip, r7\n\tmov r7, r3\n\tsvc #0\n\tmov r7, ip"
			     : "+r"(r0) : "r"(r1), "r"(r2), "r"(r3) : "ip", "cc", "memory");
	return r0;
}
#else
#error Add here the four numbers of <asm/unistd.h> and a system call of three arguments, and see \
that PROCMAP_SELF_QUERY, O_CLOEXEC and the error numbers are those of this architecture.
#endif

enum { PROCMAP_SELF_ENOENT = 2, PROCMAP_SELF_ESRCH = 3, PROCMAP_SELF_EINTR = 4 };

#define PROCMAP_SELF_AT_FDCWD	(-100)
#define PROCMAP_SELF_O_CLOEXEC	02000000
#define PROCMAP_SELF_QUERY	0xc0686611UL	/* PROCMAP_QUERY of Linux 6.11 */

/* As struct procmap_query. Being volatile, it is set without memset(). */
struct procmap_self_query {
	uint64_t size, query_flags, query_addr, vma_start, vma_end, vma_flags, vma_page_size,
		 vma_offset, inode;
	uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
	uint64_t vma_name_addr, build_id_addr;
};

/* What close(2) interrupts is closed. */
static inline int procmap_self_call(long nr, long a, long b, long c)
{
	long ret;

	do {
		ret = procmap_self_raw_call(nr, a, b, c);
	} while (ret == -PROCMAP_SELF_EINTR && nr != PROCMAP_SELF_CLOSE);
	return (int)ret;
}

/* This and the next one are not inlined, or compilers might have the stack of both in one. */
__attribute__((__noinline__, __unused__))
static int procmap_self_by_query(int fd, uintptr_t addr, struct procmap_self_mapping *mapping)
{
	volatile struct procmap_self_query query;
	int err;

	query.size = sizeof(query);
	query.query_flags = 0;
	query.query_addr = addr;
	/* The kernel does not read these, but valgrind says that it might. */
	query.vma_start = 0;
	query.vma_end = 0;
	query.vma_flags = 0;
	query.vma_page_size = 0;
	query.vma_offset = 0;
	query.inode = 0;
	query.dev_major = 0;
	query.dev_minor = 0;
	query.vma_name_size = 0;
	query.build_id_size = 0;
	query.vma_name_addr = 0;
	query.build_id_addr = 0;
	err = procmap_self_call(PROCMAP_SELF_IOCTL, fd, (long)PROCMAP_SELF_QUERY, (long)&query);
	if (err)
		return err;
	mapping->start = query.vma_start;
	mapping->end = query.vma_end;
	mapping->offset = query.vma_offset;
	mapping->inode = query.inode;
	mapping->dev_major = query.dev_major;
	mapping->dev_minor = query.dev_minor;
	mapping->flags = (uint32_t)query.vma_flags & 0xf;
	return 0;
}

/* The text, of which a piece is in memory. A line may be longer. */
struct procmap_self_text {
	int fd;
	int at;
	int size;
	char bytes[256];
};

/* Return the next byte; 0: the end; or an error of read(2). */
static inline int procmap_self_next(struct procmap_self_text *text)
{
	if (text->at == text->size) {
		text->at = 0;
		text->size = procmap_self_call(PROCMAP_SELF_READ, text->fd, (long)text->bytes,
					       sizeof(text->bytes));
		if (text->size <= 0)
			return text->size;
	}
	return (unsigned char)text->bytes[text->at++];
}

/* Read a number. @c and what is returned: the byte before and behind it, 0, or an error. */
static inline int procmap_self_number(struct procmap_self_text *text, int c, unsigned int base,
				      uint64_t *number)
{
	*number = 0;
	while (c > 0 && (c = procmap_self_next(text)) > ' ' && c != '-' && c != ':')
		*number = *number * base + (unsigned int)(c <= '9' ? c - '0' : c - 'a' + 10);
	return c;
}

__attribute__((__noinline__, __unused__))
static int procmap_self_by_text(int fd, uintptr_t addr, struct procmap_self_mapping *mapping)
{
	struct procmap_self_text text;
	uint64_t major, minor;
	int c = '\n';

	text.fd = fd;
	text.at = 0;
	text.size = 0;
	mapping->end = 0;
	while (c == '\n') {
		c = procmap_self_number(&text, c, 16, &mapping->start);
		/* The vsyscall page has a line, too, but is the kernel's. */
		if (c ? c > 0 && (mapping->start > addr || mapping->start >> 63) : mapping->end)
			return -PROCMAP_SELF_ENOENT;
		c = procmap_self_number(&text, c, 16, &mapping->end);
		while (c > 0 && c != '\n' && mapping->end <= addr)
			c = procmap_self_next(&text);
	}
	mapping->flags = 0;
	while (c > 0 && (c = procmap_self_next(&text)) > ' ') {
		if (c == 'r')
			mapping->flags |= PROCMAP_SELF_READABLE;
		else if (c == 'w')
			mapping->flags |= PROCMAP_SELF_WRITABLE;
		else if (c == 'x')
			mapping->flags |= PROCMAP_SELF_EXECUTABLE;
		else if (c == 's')
			mapping->flags |= PROCMAP_SELF_SHARED;
	}
	c = procmap_self_number(&text, c, 16, &mapping->offset);
	c = procmap_self_number(&text, c, 16, &major);
	c = procmap_self_number(&text, c, 16, &minor);
	c = procmap_self_number(&text, c, 10, &mapping->inode);
	mapping->dev_major = (uint32_t)major;
	mapping->dev_minor = (uint32_t)minor;
	return c > 0 ? 0 : c ? c : -PROCMAP_SELF_ESRCH;
}

/*
 * Set @mapping to the one that covers @addr, by PROCMAP_QUERY, else by the text of
 * /proc/self/maps. Returns 0; -ENOENT: none does; -ESRCH: there is no procfs at /proc, or it
 * does not show this process; or another error of open(2) or read(2).
 */
static inline int procmap_self(uintptr_t addr, struct procmap_self_mapping *mapping)
{
	const char *path = "/proc/self/maps";
	int tries, fd, err = 0;

	for (tries = 0; tries < 2; tries++) {
		fd = procmap_self_call(PROCMAP_SELF_OPENAT, PROCMAP_SELF_AT_FDCWD, (long)path,
				       PROCMAP_SELF_O_CLOEXEC);
		err = fd;
		if (fd >= 0) {
			err = procmap_self_by_query(fd, addr, mapping);
			if (err && err != -PROCMAP_SELF_ENOENT && err != -PROCMAP_SELF_ESRCH)
				err = procmap_self_by_text(fd, addr, mapping);
			procmap_self_call(PROCMAP_SELF_CLOSE, fd, 0, 0);
		} else if (fd == -PROCMAP_SELF_ENOENT) {
			err = -PROCMAP_SELF_ESRCH;
		}
		if (err != -PROCMAP_SELF_ESRCH)
			break;
		/* The main thread may have exited. Older emulators know the other path only. */
		path = "/proc/thread-self/maps";
	}
	return err;
}

#endif /* PROCMAP_SELF_H */
