// SPDX-License-Identifier: GPL-2.0
/*
 * Test the build IDs of thousands of hostile ELF files of both classes: with each field of
 * their headers at its edges; and at random with several such fields, flipped bits, cut off,
 * and with tables and notes across pages. libelf is the reference.
 */
#include <gelf.h>
#include <stdatomic.h>

#include "kselftest_harness.h"
#include "stress_util.h"

/*
 * The kernel looks at 32 pages of a file, each as often as it goes back to it,
 * and at 1,024 notes. It does not find a build ID behind that.
 */
#define PAGES_READ	32
#define NOTES_READ	1024

/* The largest file that a test makes, and pages that the kernel may have. */
#define IMAGE_MAX	(64 * page_size())

/* A file before it is changed at random is smaller. */
#define BASE_SIZE	1024

/* Look-ups in a file that changes, of which so many must meet a change. */
#define OVERLAPS	100

/* One of so many files on a disk is looked at when it is not resident. */
#define EVICTED_OF	16

/* A field of a header, in either class. Those that nobody looks at have flipped bits only. */
enum field_name {
	E_TYPE, E_VERSION, E_PHOFF, E_SHOFF, E_PHENTSIZE, E_PHNUM, E_SHENTSIZE, E_SHNUM,
	E_SHSTRNDX,
	P_TYPE, P_OFFSET, P_FILESZ, P_ALIGN,
	N_NAMESZ, N_DESCSZ, N_TYPE,
};

/* Where it is in the header, and how many bytes it has. */
struct field {
	size_t offset;
	size_t size;
};

/* As the specification has it, not as the headers that the kernel shares. */
static const struct layout {
	struct field in_64, in_32;
} layouts[] = {
	[E_TYPE]	= { { 16, 2 }, { 16, 2 } },
	[E_VERSION]	= { { 20, 4 }, { 20, 4 } },
	[E_PHOFF]	= { { 32, 8 }, { 28, 4 } },
	[E_SHOFF]	= { { 40, 8 }, { 32, 4 } },
	[E_PHENTSIZE]	= { { 54, 2 }, { 42, 2 } },
	[E_PHNUM]	= { { 56, 2 }, { 44, 2 } },
	[E_SHENTSIZE]	= { { 58, 2 }, { 46, 2 } },
	[E_SHNUM]	= { { 60, 2 }, { 48, 2 } },
	[E_SHSTRNDX]	= { { 62, 2 }, { 50, 2 } },
	[P_TYPE]	= { { 0, 4 }, { 0, 4 } },
	[P_OFFSET]	= { { 8, 8 }, { 4, 4 } },
	[P_FILESZ]	= { { 32, 8 }, { 16, 4 } },
	[P_ALIGN]	= { { 48, 8 }, { 28, 4 } },
	[N_NAMESZ]	= { { 0, 4 }, { 0, 4 } },
	[N_DESCSZ]	= { { 4, 4 }, { 4, 4 } },
	[N_TYPE]	= { { 8, 4 }, { 8, 4 } },
};

#define NHDR_SIZE	12

/* A field of one of the headers of a file. */
struct file_field {
	struct field field;
	size_t header;
};

#define NR_NOTES	4

/* A well-formed file. */
struct base {
	uint8_t bytes[BASE_SIZE];
	size_t size;
	size_t notes[NR_NOTES];	/* where each of them is */
	struct file_field fields[64];
	size_t nr_fields;
};

/* Of each class. */
static struct base bases[2];

/* An ELF file, byte for byte, and the one that it was made from. */
struct image {
	uint8_t *bytes;
	size_t size;
	const struct base *base;
};

static uint64_t align_to(uint64_t size, uint64_t align)
{
	return (size + align - 1) / align * align;
}

static bool is_32(const uint8_t *bytes)
{
	return bytes[EI_CLASS] == ELFCLASS32;
}

static size_t ehdr_size(const uint8_t *bytes)
{
	return is_32(bytes) ? 52 : 64;
}

static size_t phdr_size(const uint8_t *bytes)
{
	return is_32(bytes) ? 32 : 56;
}

static struct field elf_field(const uint8_t *bytes, enum field_name name)
{
	return is_32(bytes) ? layouts[name].in_32 : layouts[name].in_64;
}

static uint8_t host_order(void)
{
	const uint16_t one = 1;

	return *(const uint8_t *)&one ? ELFDATA2LSB : ELFDATA2MSB;
}

/* The low bytes of a value that a field holds, in this machine's byte order. */
static uint8_t *bytes_of_value(uint64_t *value, struct field field)
{
	return (uint8_t *)value + (host_order() == ELFDATA2LSB ? 0 : sizeof(*value) - field.size);
}

static void put_field(uint8_t *header, struct field field, uint64_t value)
{
	memcpy(header + field.offset, bytes_of_value(&value, field), field.size);
}

static uint64_t get_field(const uint8_t *header, struct field field)
{
	uint64_t value = 0;

	memcpy(bytes_of_value(&value, field), header + field.offset, field.size);
	return value;
}

static void elf_put(uint8_t *bytes, size_t header, enum field_name name, uint64_t value)
{
	put_field(bytes + header, elf_field(bytes, name), value);
}

static uint64_t elf_get(const uint8_t *bytes, size_t header, enum field_name name)
{
	return get_field(bytes + header, elf_field(bytes, name));
}

/*
 * The model.
 *
 * libelf reads the file behind a header of its own: that of the file, but of a
 * valid version, without sections, with program headers of the size that they have
 * in this class, and with only those that are within the file. It reads no other
 * files, and the kernel does. Neither does it read a note that the end of the file
 * cuts off, so it gets some bytes more.
 */
#define SHIFT		64
#define PADDING		64
#define NO_PAGE		(~0ull)

/* The build ID of a file by libelf, and how far the kernel has read the file. */
struct model {
	const struct image *image;
	Elf *elf;
	uint64_t page;		/* the one that was looked at last, or NO_PAGE */
	unsigned int pages;	/* that were looked at */
	unsigned int notes;	/* the same */
	size_t size;		/* of the build ID, 0 if there is none */
	uint8_t id[BUILD_ID_SIZE];
};

/* It has room for IMAGE_MAX with pages of 64 KiB. */
static _Alignas(64) uint8_t shifted[SHIFT + (64 << 16) + PADDING];

/*
 * The kernel reads these bytes, page by page. Returns false if they are not all in
 * the file, or if it looks at no more pages.
 */
static bool model_look_at(struct model *model, uint64_t pos, uint64_t size)
{
	const uint64_t end = pos + size;
	uint64_t page = pos / page_size();

	do {
		if (page != model->page) {
			model->page = NO_PAGE;
			if (page * page_size() >= model->image->size ||
			    model->pages == PAGES_READ)
				return false;
			model->page = page;
			model->pages++;
		}
		if (model->image->size < end &&
		    model->image->size < (page + 1) * page_size())
			return false;
	} while (++page <= (end - 1) / page_size());
	return true;
}

/* The same, for the header of a note. */
static bool model_look_at_note(struct model *model, uint64_t pos)
{
	return model->notes++ < NOTES_READ && model_look_at(model, pos, NHDR_SIZE);
}

/* Returns true if the note is the build ID, or would be if it were whole. */
static bool model_note(struct model *model, uint64_t pos, const GElf_Nhdr *note,
		       uint64_t desc)
{
	const uint8_t *const bytes = model->image->bytes;

	if (note->n_type != NT_GNU_BUILD_ID || note->n_namesz != sizeof("GNU") ||
	    !note->n_descsz || note->n_descsz > BUILD_ID_SIZE ||
	    !model_look_at(model, pos + NHDR_SIZE, sizeof("GNU")) ||
	    memcmp(bytes + pos + NHDR_SIZE, "GNU", sizeof("GNU")))
		return false;
	if (model_look_at(model, desc, note->n_descsz)) {
		model->size = note->n_descsz;
		memcpy(model->id, bytes + desc, model->size);
	}
	return true;
}

/*
 * A note that libelf cannot read ends behind its segment, or behind the file. Then
 * the kernel looks for the next one there.
 */
static void model_cut_note(struct model *model, uint64_t pos, uint64_t left,
			   uint64_t align)
{
	const uint64_t desc = align_to(NHDR_SIZE + elf_get(model->image->bytes, pos, N_NAMESZ),
				       align);
	const uint64_t next = align_to(desc + elf_get(model->image->bytes, pos, N_DESCSZ),
				       align);

	if (next < left && left - next >= NHDR_SIZE)
		model_look_at_note(model, pos + next);
}

static void model_notes(struct model *model, const GElf_Phdr *phdr)
{
	const uint64_t start = phdr->p_offset, size = phdr->p_filesz;
	const uint64_t align = phdr->p_align == 8 ? 8 : 4;
	const uint64_t room = model->image->size + PADDING - start;
	size_t pos, next, owner, desc;
	Elf_Data *data = NULL;
	GElf_Nhdr note;

	if (start <= model->image->size)
		data = elf_getdata_rawchunk(model->elf, start + SHIFT,
					    size < room ? align_to(size, align) : room,
					    align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	for (pos = 0; size >= NHDR_SIZE && pos <= size - NHDR_SIZE; pos = next) {
		if (!model_look_at_note(model, start + pos))
			return;
		next = gelf_getnote(data, pos, &note, &owner, &desc);
		if (!next)
			model_cut_note(model, start + pos, size - pos, align);
		if (!next || desc + align_to(note.n_descsz, 4) > size ||
		    model_note(model, start + pos, &note, start + desc))
			return;
	}
}

static void model_phdrs(struct model *model)
{
	const uint64_t phoff = elf_get(model->image->bytes, 0, E_PHOFF);
	const size_t size = phdr_size(model->image->bytes);
	GElf_Phdr phdr;
	size_t nr, i;

	if (elf_getphdrnum(model->elf, &nr))
		return;
	for (i = 0; i < nr && !model->size; i++) {
		if (!model_look_at(model, phoff + i * size, size) ||
		    !gelf_getphdr(model->elf, i, &phdr))
			return;
		if (phdr.p_type == PT_NOTE)
			model_notes(model, &phdr);
	}
}

/* Give libelf the file. Returns NULL if it is none that can have a build ID. */
static Elf *model_open_elf(const struct image *image)
{
	uint64_t phoff, nr;
	GElf_Ehdr ehdr;
	Elf *elf;

	if (image->size < EI_NIDENT ||
	    image->bytes[EI_DATA] != host_order() ||
	    image->size < ehdr_size(image->bytes))
		return NULL;
	phoff = elf_get(image->bytes, 0, E_PHOFF);
	if (phoff > image->size)
		return NULL;
	nr = (image->size - phoff) / phdr_size(image->bytes);
	memcpy(shifted, image->bytes, ehdr_size(image->bytes));
	memcpy(shifted + SHIFT, image->bytes, image->size);
	shifted[EI_VERSION] = EV_CURRENT;
	elf_put(shifted, 0, E_PHENTSIZE, phdr_size(image->bytes));
	elf_put(shifted, 0, E_PHOFF, phoff + SHIFT);
	if (elf_get(image->bytes, 0, E_PHNUM) > nr)
		elf_put(shifted, 0, E_PHNUM, nr);
	elf_put(shifted, 0, E_SHOFF, 0);
	elf_put(shifted, 0, E_SHNUM, 0);
	elf_put(shifted, 0, E_SHSTRNDX, 0);

	elf = elf_memory((char *)shifted, SHIFT + image->size + PADDING);
	if (elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &ehdr) &&
	    (ehdr.e_type == ET_EXEC || ehdr.e_type == ET_DYN))
		return elf;
	elf_end(elf);
	return NULL;
}

static struct model model_of(const struct image *image)
{
	struct model model = { .image = image, .page = NO_PAGE };

	model.elf = model_open_elf(image);
	if (!model.elf)
		return model;
	if (model_look_at(&model, 0, ehdr_size(image->bytes)))
		model_phdrs(&model);
	elf_end(model.elf);
	return model;
}

/*
 * The files: each follows from the seed and its number.
 */

static void add_field(struct base *base, size_t header, struct field field)
{
	const struct file_field new = { field, header };

	if (base->nr_fields == ARRAY_SIZE(base->fields))
		abort();
	base->fields[base->nr_fields++] = new;
}

static void add_fields(struct base *base, size_t header, enum field_name first,
		       enum field_name last)
{
	enum field_name name;

	for (name = first; name <= last; name++)
		add_field(base, header, elf_field(base->bytes, name));
}

/* Returns the size of the note, before padding. Its descriptor begins with @seed. */
static size_t put_note(uint8_t *bytes, size_t pos, size_t align, const char *owner,
		       uint32_t type, size_t size, uint8_t seed)
{
	const size_t desc = align_to(NHDR_SIZE + strlen(owner) + 1, align);
	size_t i;

	elf_put(bytes, pos, N_NAMESZ, strlen(owner) + 1);
	elf_put(bytes, pos, N_DESCSZ, size);
	elf_put(bytes, pos, N_TYPE, type);
	strcpy((char *)bytes + pos + NHDR_SIZE, owner);
	for (i = 0; i < size; i++)
		bytes[pos + desc + i] = seed + 7 * i;
	return desc + size;
}

/*
 * Two segments of notes; those before the build ID have another type, size or owner. It is
 * the last one, so that the end of its segment is its own.
 */
static void make_base(struct base *base, uint8_t class, size_t align)
{
	static const struct {
		const char *owner;
		uint32_t type;
		size_t size;
	} notes[NR_NOTES] = {
		{ "GNU", NT_GNU_ABI_TAG, 16 },
		{ "stranger", NT_GNU_BUILD_ID, 13 },
		{ "GNX", NT_GNU_BUILD_ID, BUILD_ID_SIZE },
		{ "GNU", NT_GNU_BUILD_ID, BUILD_ID_SIZE },
	};
	const uint8_t ident[EI_NIDENT] = {
		ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, class, host_order(), EV_CURRENT,
	};
	uint8_t *const bytes = base->bytes;
	size_t phdr, pos, size = 0, i;

	memcpy(bytes, ident, sizeof(ident));
	for (i = 0; i < EI_NIDENT; i++)
		add_field(base, 0, (struct field) { i, 1 });
	add_fields(base, 0, E_TYPE, E_SHSTRNDX);
	phdr = ehdr_size(bytes);
	elf_put(bytes, 0, E_TYPE, ET_DYN);
	elf_put(bytes, 0, E_VERSION, EV_CURRENT);
	elf_put(bytes, 0, E_PHOFF, phdr);
	elf_put(bytes, 0, E_PHENTSIZE, phdr_size(bytes));
	elf_put(bytes, 0, E_PHNUM, 3);
	elf_put(bytes, phdr, P_TYPE, PT_LOAD);
	add_fields(base, phdr, P_TYPE, P_ALIGN);
	pos = align_to(phdr + 3 * phdr_size(bytes), align);
	for (i = 0; i < NR_NOTES; i++, pos = align_to(pos + size, align)) {
		if (i == 0 || i == 2) {
			phdr += phdr_size(bytes);
			elf_put(bytes, phdr, P_TYPE, PT_NOTE);
			elf_put(bytes, phdr, P_OFFSET, pos);
			elf_put(bytes, phdr, P_ALIGN, align);
			add_fields(base, phdr, P_TYPE, P_ALIGN);
		}
		base->notes[i] = pos;
		add_fields(base, pos, N_NAMESZ, N_TYPE);
		size = put_note(bytes, pos, align, notes[i].owner, notes[i].type,
				notes[i].size, i);
		elf_put(bytes, phdr, P_FILESZ,
			pos + size - elf_get(bytes, phdr, P_OFFSET));
	}
	base->size = pos;
}

/* Set a field to a value at its edges, or to one that makes an unchecked sum wrap. */
static void set_some_field(struct image *image, uint64_t *seed)
{
	const struct file_field *const at =
		&image->base->fields[rand_below(image->base->nr_fields, seed)];
	uint8_t *const header = image->bytes + at->header;
	const uint64_t now = get_field(header, at->field);
	const uint64_t values[] = {
		0, 1, now - 1, now + 1, now - 4, now + 4, ~0ull, ~0ull - 1,
		~0ull >> 1, (~0ull >> 1) + 1, INT32_MAX, (uint64_t)INT32_MAX + 1,
		-12, -16, image->size, image->size - 1, image->size + 1,
		page_size(),
	};

	put_field(header, at->field, values[rand_below(ARRAY_SIZE(values), seed)]);
}

static void flip_bits(struct image *image, uint64_t *seed)
{
	size_t nr = 1 + rand_below(16, seed);

	while (nr--)
		image->bytes[rand_below(BASE_SIZE, seed)] ^= 1 << rand_below(8, seed);
}

static size_t some_note(const struct image *image, uint64_t *seed)
{
	return image->base->notes[rand_below(NR_NOTES, seed)];
}

static void cut_file_off(struct image *image, uint64_t *seed)
{
	const size_t note = some_note(image, seed);

	image->size = rand_below(2, seed) ? rand_below(image->size + 1, seed) :
				       note + rand_below(64, seed);
}

static void grow_image(struct image *image, size_t size)
{
	if (image->size < size)
		image->size = size;
}

/* The position of a random PT_NOTE header, or 0. */
static size_t note_phdr(const struct image *image, uint64_t *seed)
{
	const uint64_t phoff = elf_get(image->bytes, 0, E_PHOFF);
	const uint64_t nr = elf_get(image->bytes, 0, E_PHNUM);
	size_t tries, phdr;

	for (tries = 0; tries < 32 && nr && phoff < BASE_SIZE; tries++) {
		phdr = phoff + rand_below(nr, seed) * phdr_size(image->bytes);
		if (phdr + phdr_size(image->bytes) <= BASE_SIZE &&
		    elf_get(image->bytes, phdr, P_TYPE) == PT_NOTE)
			return phdr;
	}
	return 0;
}

static void move_phdrs(struct image *image, uint64_t *seed)
{
	const uint64_t from = elf_get(image->bytes, 0, E_PHOFF);
	const size_t size = elf_get(image->bytes, 0, E_PHNUM) * phdr_size(image->bytes);
	const size_t to = (1 + rand_below(4, seed)) * page_size() -
			  rand_below(512, seed);

	if (from > BASE_SIZE || size > BASE_SIZE)
		return;
	memmove(image->bytes + to, image->bytes + from, size);
	elf_put(image->bytes, 0, E_PHOFF, to);
	grow_image(image, to + size);
}

static void move_notes(struct image *image, uint64_t *seed)
{
	const size_t phdr = note_phdr(image, seed);
	const size_t align = rand_below(8, seed) ? 4 : 1;
	uint64_t from, size;
	size_t to;

	if (!phdr)
		return;
	from = elf_get(image->bytes, phdr, P_OFFSET);
	size = elf_get(image->bytes, phdr, P_FILESZ);
	if (from > BASE_SIZE || size > BASE_SIZE || size > page_size())
		return;
	to = (1 + rand_below(8, seed)) * page_size() -
	     rand_below(size / align + 1, seed) * align;
	memmove(image->bytes + to, image->bytes + from, size);
	elf_put(image->bytes, phdr, P_OFFSET, to);
	grow_image(image, to + size);
}

/* Sizes and alignments of a segment, and of the notes in it, at its end. */
static void set_edges(struct image *image, uint64_t *seed)
{
	static const uint16_t aligns[] = { 0, 1, 2, 4, 8, 16, 4096 };
	const size_t phdr = note_phdr(image, seed);
	const size_t note = some_note(image, seed);
	uint64_t end;

	if (!phdr)
		return;
	end = elf_get(image->bytes, phdr, P_OFFSET) + elf_get(image->bytes, phdr, P_FILESZ);
	switch (rand_below(4, seed)) {
	case 0:
		elf_put(image->bytes, phdr, P_ALIGN,
			aligns[rand_below(ARRAY_SIZE(aligns), seed)]);
		break;
	case 1:
		elf_put(image->bytes, phdr, P_FILESZ, elf_get(image->bytes, phdr, P_FILESZ) - 12 +
					   rand_below(25, seed));
		break;
	case 2:
		elf_put(image->bytes, note, N_NAMESZ, end - note - 24 + rand_below(25, seed));
		break;
	default:
		elf_put(image->bytes, note, N_DESCSZ, end - note - 24 + rand_below(25, seed));
		break;
	}
}

static void (*const mutations[])(struct image *image, uint64_t *seed) = {
	set_some_field, flip_bits, cut_file_off, move_phdrs, move_notes, set_edges,
};

/* Everything behind the copy becomes zero again. */
static void copy_base(struct image *image, const struct base *base)
{
	madvise(image->bytes, IMAGE_MAX, MADV_DONTNEED);
	memcpy(image->bytes, base->bytes, base->size);
	image->size = base->size;
	image->base = base;
}

/* Every second file has one field at one of its edges. */
static void make_at_random(struct image *image, uint64_t *seed)
{
	size_t nr;

	copy_base(image, &bases[rand_below(ARRAY_SIZE(bases), seed)]);
	if (rand_below(2, seed))
		return set_some_field(image, seed);
	for (nr = 1 + rand_below(4, seed); nr; nr--)
		mutations[rand_below(ARRAY_SIZE(mutations), seed)](image, seed);
}

/* By either ioctl: the size of the build ID, 0 if there is none, or -errno. */
static int id_by_query(int maps, uint64_t addr, uint8_t id[BUILD_ID_SIZE])
{
	struct procmap_query query;

	return query_build_id(maps, addr, &query, id, BUILD_ID_SIZE) ?:
	       (int)query.build_id_size;
}

/* NOT_READ if a page would have to be read. */
#define NOT_READ	(-EAGAIN)

static int id_by_scan(int maps, uint64_t addr, uint8_t id[BUILD_ID_SIZE])
{
	struct procmap_vma vma;
	const struct scan_buffers buffers = { &vma, (char *)id, 1, BUILD_ID_SIZE };
	struct procmap_scan_arg arg = scan_arg(&buffers, addr, addr + 1,
					       PROCMAP_SCAN_BUILD_IDS);
	const int nr = procmap_scan(maps, &arg);

	if (nr != 1)
		return nr < 0 ? nr : -ENOENT;
	if (vma.flags & PROCMAP_VMA_BUILD_ID_NOT_READ)
		return vma.build_id_size ? -EBADMSG : NOT_READ;
	return vma.build_id_offset ? -EBADMSG : (int)vma.build_id_size;
}

static bool is_id(const struct model *model, int expected, int size, const uint8_t *id)
{
	return size == expected && (size <= 0 || !memcmp(id, model->id, size));
}

FIXTURE(file)
{
	int maps;
	int fd;
	uint64_t addr;
};

FIXTURE_VARIANT(file)
{
	bool on_ext4;
};

FIXTURE_VARIANT_ADD(file, tmpfs) { .on_ext4 = false };
FIXTURE_VARIANT_ADD(file, ext4) { .on_ext4 = true };

FIXTURE_SETUP(file)
{
	const char *const missing = find_build_id_reader() ?:
				    (variant->on_ext4 ? mount_scratch_ext4() : NULL);

	SKIP_WITHOUT_SCAN();
	if (missing)
		SKIP_SETUP(missing);
	ASSERT_NE((unsigned int)EV_NONE, elf_version(EV_CURRENT));
	self->maps = open_maps(0);
	self->fd = variant->on_ext4 ?
		   open(SCRATCH_DISK "/elf", O_RDWR | O_CREAT | O_CLOEXEC, 0700) :
		   memfd_create("elf", MFD_CLOEXEC);
	self->addr = (uintptr_t)mmap(NULL, page_size(), PROT_READ, MAP_SHARED, self->fd, 0);
	make_base(&bases[0], ELFCLASS64, 8);
	make_base(&bases[1], ELFCLASS32, 4);
}

FIXTURE_TEARDOWN(file)
{
}

/* The scan first: a query would read what is not resident. */
TEST_F_TIMEOUT(file, has_the_build_id_that_libelf_finds, SOAK_TIMEOUT)
{
	const struct soak soak = begin_soak();
	unsigned long n, found = 0;
	struct image image = { .bytes = map_pages(IMAGE_MAX) };

	for (n = 0; !soak_is_over(&soak, n); n++) {
		uint64_t seed = soak_seed(&soak, n);
		uint8_t id[BUILD_ID_SIZE];
		bool evicted = false;
		struct model model;
		int expected, size;

		make_at_random(&image, &seed);
		model = model_of(&image);
		ASSERT_TRUE(write_all(self->fd, image.bytes, image.size));
		if (variant->on_ext4 && n % EVICTED_OF == 0)
			evicted = evict_file(self->fd) && image.size;
		expected = evicted ? NOT_READ : (int)model.size;
		size = id_by_scan(self->maps, self->addr, id);
		ASSERT_TRUE(is_id(&model, expected, size, id)) {
			TH_LOG("scan: file %lu: %d instead of %d bytes", n, size, expected);
		}
		size = id_by_query(self->maps, self->addr, id);
		ASSERT_TRUE(is_id(&model, model.size, size, id)) {
			TH_LOG("query: file %lu: %d instead of %zu bytes", n, size, model.size);
		}
		found += size > 0;
	}
	TH_LOG("%lu files, %lu with a build ID", n, found);
	EXPECT_LT(n / 10, found);
	EXPECT_LT(found, n - n / 10);
}

/* The two files that one becomes in turn, in another thread. */
struct rewriter {
	int fd;
	struct elf_file versions[2];
	atomic_uint rounds;
	atomic_bool stop;
	bool failed;
};

static void *rewrite_until_stopped(void *arg)
{
	struct rewriter *const rewriter = arg;

	while (!rewriter->stop) {
		if (!write_all(rewriter->fd, &rewriter->versions[rewriter->rounds % 2],
			       sizeof(struct elf_file)))
			rewriter->failed = true;
		rewriter->rounds++;
	}
	return NULL;
}

/* Each answer is one of the versions, or none; not always none. */
TEST_F_TIMEOUT(file, truncated_and_rewritten_meanwhile_has_an_id_of_then, LONG_TIMEOUT)
{
	const uint8_t all[3][BUILD_ID_SIZE] = { [1][0 ... 19] = 1, [2][0 ... 19] = 2 };
	struct rewriter rewriter = {
		.fd = self->fd,
		.versions = { elf_with_id(all[1]), elf_with_id(all[2]) },
	};
	unsigned int before, overlaps = 0, found = 0;
	uint8_t id[BUILD_ID_SIZE];
	pthread_t thread;
	int size;

	ASSERT_EQ(0, pthread_create(&thread, NULL, rewrite_until_stopped, &rewriter));
	while (overlaps < OVERLAPS || found < OVERLAPS) {
		before = rewriter.rounds;
		size = id_by_query(self->maps, self->addr, id);
		/* A rewrite has ended since: it was going on meanwhile. */
		overlaps += rewriter.rounds != before;
		found += size > 0;
		ASSERT_TRUE(size == 0 || size == BUILD_ID_SIZE);
		if (size)
			ASSERT_TRUE((*id == 1 || *id == 2) && is_filled(id, size, *id));
	}
	rewriter.stop = true;
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_FALSE(rewriter.failed);
}

TEST_HARNESS_MAIN
