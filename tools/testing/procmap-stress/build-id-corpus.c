// SPDX-License-Identifier: GPL-2.0
/*
 * Test the build IDs of thousands of hostile ELF files: real ones, of both
 * classes, with each field of their headers at its edges; and at random with
 * several such fields, flipped bits, cut off, with tables and notes across pages,
 * and with more of them than the kernel looks at. libelf is the reference.
 */
#include <gelf.h>
#include <glob.h>

#include "kselftest_harness.h"
#include "elf_image.h"
#include "stress_util.h"

/*
 * The kernel looks at 32 pages of a file, each as often as it goes back to it,
 * and at 1,024 notes. It does not find a build ID behind that.
 */
#define PAGES_READ	32
#define NOTES_READ	1024

/* The beginning of a real file, which is all that is changed and mapped. */
#define REAL_SIZE	8192

#define BASES_MAX	8
#define MADE_BASES	2	/* the first ones */

/* One of so many files on a disk is looked at when it is not resident. */
#define EVICTED_OF	16

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
	const uint64_t desc = align_to(NHDR_SIZE + elf_get(model->image, pos, N_NAMESZ),
				       align);
	const uint64_t next = align_to(desc + elf_get(model->image, pos, N_DESCSZ),
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
	const uint64_t phoff = elf_get(model->image, 0, E_PHOFF);
	const size_t size = phdr_size(model->image);
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
	struct image header = { .bytes = shifted };
	uint64_t phoff, nr;
	GElf_Ehdr ehdr;
	Elf *elf;

	if (image->size < EI_NIDENT ||
	    image->bytes[EI_DATA] != host_order() ||
	    image->size < ehdr_size(image))
		return NULL;
	phoff = elf_get(image, 0, E_PHOFF);
	if (phoff > image->size)
		return NULL;
	nr = (image->size - phoff) / phdr_size(image);
	memcpy(shifted, image->bytes, ehdr_size(image));
	memcpy(shifted + SHIFT, image->bytes, image->size);
	shifted[EI_VERSION] = EV_CURRENT;
	elf_put(&header, 0, E_PHENTSIZE, phdr_size(image));
	elf_put(&header, 0, E_PHOFF, phoff + SHIFT);
	if (elf_get(image, 0, E_PHNUM) > nr)
		elf_put(&header, 0, E_PHNUM, nr);
	elf_put(&header, 0, E_SHOFF, 0);
	elf_put(&header, 0, E_SHNUM, 0);
	elf_put(&header, 0, E_SHSTRNDX, 0);

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
	if (model_look_at(&model, 0, ehdr_size(image)))
		model_phdrs(&model);
	elf_end(model.elf);
	return model;
}

/*
 * The files: each follows from the seed and its number.
 */

/* Each field of the headers of a file. */
struct corpus_field {
	struct field field;
	size_t header;
};

struct corpus {
	struct corpus_field fields[256];
	size_t nr;
};

static void add_field(struct corpus *corpus, size_t header, struct field field)
{
	const struct corpus_field new = { field, header };

	if (corpus->nr < ARRAY_SIZE(corpus->fields))
		corpus->fields[corpus->nr++] = new;
}

static void add_fields(struct corpus *corpus, const struct image *image,
		       size_t header, enum field_name first,
		       enum field_name last)
{
	enum field_name name;

	for (name = first; name <= last; name++)
		add_field(corpus, header, elf_field(image, name));
}

static void add_all_fields(struct corpus *corpus, const struct image *image)
{
	struct field byte = { 0, 1 };
	size_t i;

	for (; byte.offset < EI_NIDENT; byte.offset++)
		add_field(corpus, 0, byte);
	add_fields(corpus, image, 0, E_TYPE, E_SHSTRNDX);
	for (i = 0; i < elf_get(image, 0, E_PHNUM); i++)
		add_fields(corpus, image,
			   elf_get(image, 0, E_PHOFF) + i * phdr_size(image),
			   P_TYPE, P_ALIGN);
	for (i = 0; i < image->nr_notes; i++)
		add_fields(corpus, image, image->notes[i], N_NAMESZ, N_TYPE);
}

#define VALUES	18

/* Values for a field: its edges, and those that make an unchecked sum wrap. */
static uint64_t hostile_value(const struct image *image, uint64_t now, size_t i)
{
	const uint64_t values[VALUES] = {
		0, 1, now - 1, now + 1, now - 4, now + 4, ~0ull, ~0ull - 1,
		~0ull >> 1, (~0ull >> 1) + 1, INT32_MAX, (uint64_t)INT32_MAX + 1,
		-12, -16, image->size, image->size - 1, image->size + 1,
		page_size(),
	};

	return values[i];
}

struct base {
	const char *name;
	struct image image;
	struct corpus corpus;
};

static struct base bases[BASES_MAX];
static size_t nr_bases;

/* Note where the notes of a well-formed file are. */
static void find_notes(struct image *image)
{
	size_t i;

	for (i = 0; i < elf_get(image, 0, E_PHNUM); i++) {
		const size_t phdr = elf_get(image, 0, E_PHOFF) +
				    i * phdr_size(image);
		const size_t align = elf_get(image, phdr, P_ALIGN) == 8 ? 8 : 4;
		size_t pos = elf_get(image, phdr, P_OFFSET);
		const size_t end = pos + elf_get(image, phdr, P_FILESZ);

		if (elf_get(image, phdr, P_TYPE) != PT_NOTE || end > image->size)
			continue;
		while (pos + NHDR_SIZE <= end && image->nr_notes < NOTES_MAX) {
			image->notes[image->nr_notes++] = pos;
			pos += align_to(NHDR_SIZE + elf_get(image, pos, N_NAMESZ),
					align);
			pos += align_to(elf_get(image, pos, N_DESCSZ), align);
		}
	}
}

static void add_base(const char *name, const struct image *image)
{
	struct base *const base = &bases[nr_bases++];

	base->name = name;
	base->image = *image;
	add_all_fields(&base->corpus, image);
}

static void add_real_base(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct image image = { .bytes = calloc(1, IMAGE_MAX) };
	const ssize_t size = read(fd, image.bytes, REAL_SIZE);

	close(fd);
	if (size != REAL_SIZE || nr_bases == BASES_MAX)
		return;
	image.size = size;
	find_notes(&image);
	if (image.nr_notes)
		add_base(strdup(path), &image);
}

static void add_made_base(const char *name, bool with_32, uint64_t align)
{
	const struct elf elf = {
		.is_32 = with_32,
		.type = ET_DYN,
		.segments = {
			{ .type = PT_LOAD },
			{ .type = PT_NOTE, .align = align,
			  .notes = { ABI_TAG, ODD_STRANGER } },
			{ .type = PT_NOTE, .align = align,
			  .notes = { STRANGER, BUILD_ID(1, 20), ABI_TAG } },
		},
	};
	struct image image = {};

	make_image(&image, &elf);
	add_base(name, &image);
}

/* This program and its libraries, those of the other class, and made ones. */
static void add_bases(void)
{
	static const char *const patterns[] = {
		"/proc/self/exe", "/lib64/ld-*.so*", "/lib/*/libc.so.6",
		"/lib/ld-linux.so.2", "/usr/lib32/libc.so.6",
	};
	size_t i;

	add_made_base("made, 64 bits", false, 8);
	add_made_base("made, 32 bits", true, 4);
	for (i = 0; i < ARRAY_SIZE(patterns); i++) {
		glob_t found;

		if (!glob(patterns[i], 0, NULL, &found))
			add_real_base(found.gl_pathv[0]);
		globfree(&found);
	}
}

/* The position of a random PT_NOTE header, or 0. */
static size_t note_phdr(const struct image *image, uint64_t *seed)
{
	const uint64_t phoff = elf_get(image, 0, E_PHOFF);
	const uint64_t nr = elf_get(image, 0, E_PHNUM);
	size_t tries, phdr;

	for (tries = 0; tries < 32 && nr && phoff < REAL_SIZE; tries++) {
		phdr = phoff + rand_below(nr, seed) * phdr_size(image);
		if (phdr + phdr_size(image) <= REAL_SIZE &&
		    elf_get(image, phdr, P_TYPE) == PT_NOTE)
			return phdr;
	}
	return 0;
}

static void set_field(struct image *image, const struct corpus_field *field,
		      size_t value)
{
	const uint64_t now = elf_get_field(image, field->header, field->field);

	elf_put_field(image, field->header, field->field,
		      hostile_value(image, now, value));
}

static void set_some_field(struct image *image, const struct base *base,
			   uint64_t *seed)
{
	const struct corpus *const corpus = &base->corpus;

	set_field(image, &corpus->fields[rand_below(corpus->nr, seed)],
		  rand_below(VALUES, seed));
}

static void flip_bits(struct image *image, const struct base *base,
		      uint64_t *seed)
{
	size_t nr = 1 + rand_below(16, seed);

	(void)base;
	while (nr--)
		image->bytes[rand_below(1024, seed)] ^= 1 << rand_below(8, seed);
}

static void cut_file_off(struct image *image, const struct base *base,
			 uint64_t *seed)
{
	const struct image *const whole = &base->image;
	const size_t note = whole->notes[rand_below(whole->nr_notes, seed)];

	image->size = rand_below(2, seed) ? rand_below(image->size + 1, seed) :
				       note + rand_below(64, seed);
}

static void move_phdrs(struct image *image, const struct base *base,
		       uint64_t *seed)
{
	const uint64_t from = elf_get(image, 0, E_PHOFF);
	const size_t size = elf_get(image, 0, E_PHNUM) * phdr_size(image);
	const size_t to = (1 + rand_below(4, seed)) * page_size() -
			  rand_below(512, seed);

	(void)base;
	if (from > REAL_SIZE || size > REAL_SIZE)
		return;
	memmove(image->bytes + to, image->bytes + from, size);
	elf_put(image, 0, E_PHOFF, to);
	grow_image(image, to + size);
}

static void move_notes(struct image *image, const struct base *base,
		       uint64_t *seed)
{
	const size_t phdr = note_phdr(image, seed);
	const size_t align = rand_below(8, seed) ? 4 : 1;
	uint64_t from, size;
	size_t to;

	(void)base;
	if (!phdr)
		return;
	from = elf_get(image, phdr, P_OFFSET);
	size = elf_get(image, phdr, P_FILESZ);
	if (from > REAL_SIZE || size > REAL_SIZE || size > page_size())
		return;
	to = (1 + rand_below(8, seed)) * page_size() -
	     rand_below(size / align + 1, seed) * align;
	memmove(image->bytes + to, image->bytes + from, size);
	elf_put(image, phdr, P_OFFSET, to);
	grow_image(image, to + size);
}

/* Sizes and alignments of a segment, and of the notes in it, at its end. */
static void set_edges(struct image *image, const struct base *base,
		      uint64_t *seed)
{
	static const uint16_t aligns[] = { 0, 1, 2, 4, 8, 16, 4096 };
	const size_t phdr = note_phdr(image, seed);
	const struct image *const whole = &base->image;
	const size_t note = whole->notes[rand_below(whole->nr_notes, seed)];
	uint64_t end;

	if (!phdr)
		return;
	end = elf_get(image, phdr, P_OFFSET) + elf_get(image, phdr, P_FILESZ);
	switch (rand_below(4, seed)) {
	case 0:
		elf_put(image, phdr, P_ALIGN,
			aligns[rand_below(ARRAY_SIZE(aligns), seed)]);
		break;
	case 1:
		elf_put(image, phdr, P_FILESZ, elf_get(image, phdr, P_FILESZ) - 12 +
					   rand_below(25, seed));
		break;
	case 2:
		elf_put(image, note, N_NAMESZ, end - note - 24 + rand_below(25, seed));
		break;
	default:
		elf_put(image, note, N_DESCSZ, end - note - 24 + rand_below(25, seed));
		break;
	}
}

/* Program headers around the last that the kernel looks at, notes in the end. */
static void add_phdrs(struct image *image, const struct base *base,
		      uint64_t *seed)
{
	const size_t size = phdr_size(image);
	const size_t to = rand_below(2, seed) ? page_size() : REAL_SIZE - 8;
	const size_t few = (PAGES_READ - 3) * page_size() / size;
	const size_t nr = few + rand_below(4 * page_size() / size, seed);
	const size_t from = note_phdr(image, seed);

	(void)base;
	if (!from)
		return;
	memmove(image->bytes + to + (nr - 1) * size, image->bytes + from, size);
	memset(image->bytes + to, 0, (nr - 1) * size);
	elf_put(image, 0, E_PHOFF, to);
	elf_put(image, 0, E_PHNUM, rand_below(8, seed) ? nr : 0xffff);
	grow_image(image, to + nr * size);
}

/* Notes around the last that the kernel looks at, small or of a page each. */
static void add_notes(struct image *image, const struct base *base,
		      uint64_t *seed)
{
	const struct note id = BUILD_ID(rand_below(256, seed),
					1 + rand_below(22, seed));
	const bool small = rand_below(2, seed);
	const size_t desc = small ? 0 : page_size() - 32 + rand_below(64, seed) / 4 * 4;
	const size_t start = align_to(image->size, 8);
	size_t nr = small ? NOTES_READ - 8 + rand_below(16, seed) :
			    PAGES_READ - 8 + rand_below(16, seed);
	const size_t phdr = note_phdr(image, seed);
	size_t pos = start;

	(void)base;
	if (!phdr || start > REAL_SIZE)
		return;
	memset(image->bytes + start, 0, nr * (NHDR_SIZE + desc));
	for (; nr; nr--, pos += NHDR_SIZE + desc)
		elf_put(image, pos, N_DESCSZ, desc);
	image->nr_notes = 0;
	pos = put_note(image, pos, 4, &id);
	elf_put(image, phdr, P_OFFSET, start);
	elf_put(image, phdr, P_FILESZ, pos - start);
	elf_put(image, phdr, P_ALIGN, 4);
}

static void (*const mutations[])(struct image *image, const struct base *base,
				 uint64_t *seed) = {
	set_some_field, flip_bits, cut_file_off, move_phdrs, move_notes, set_edges,
	add_phdrs, add_notes,
};

/* Everything behind the copy becomes zero again. */
static void copy_image(struct image *image, const struct image *from)
{
	uint8_t *const bytes = image->bytes ?:
			       mmap(NULL, IMAGE_MAX, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(bytes, IMAGE_MAX, MADV_DONTNEED);
	memcpy(bytes, from->bytes, from->size);
	*image = *from;
	image->bytes = bytes;
}

/* Change one field of one base, as the number says. Returns the base. */
static const struct base *make_with_field(struct image *image, size_t number)
{
	const struct base *base = bases;

	for (; number >= base->corpus.nr * VALUES; base++)
		number -= base->corpus.nr * VALUES;
	copy_image(image, &base->image);
	set_field(image, &base->corpus.fields[number / VALUES], number % VALUES);
	return base;
}

static const struct base *make_at_random(struct image *image, uint64_t *seed)
{
	const struct base *const base = &bases[rand_below(nr_bases, seed)];
	size_t nr = 1 + rand_below(4, seed);

	copy_image(image, &base->image);
	while (nr--)
		mutations[rand_below(ARRAY_SIZE(mutations), seed)](image, base, seed);
	return base;
}

static size_t nr_fields(size_t nr)
{
	size_t i, fields = 0;

	for (i = 0; i < nr; i++)
		fields += bases[i].corpus.nr * VALUES;
	return fields;
}

/*
 * The first @made files have one field at one of its edges, all those of the made
 * bases, and then every second file has any; 7919 is a prime.
 */
static const struct base *make_nth(struct image *image, const struct soak *soak,
				   size_t made, unsigned long n)
{
	const size_t fields = nr_fields(nr_bases);
	uint64_t seed = soak_seed(soak, n);

	if (n < made)
		return make_with_field(image, n);
	if (n % 2 == 0 && n / 2 < fields)
		return make_with_field(image, (soak->seed % fields +
					       n / 2 * 7919) % fields);
	return make_at_random(image, &seed);
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
	const char *const missing = variant->on_ext4 ? mount_scratch_ext4() : NULL;

	SKIP_WITHOUT_SCAN();
	if (missing)
		SKIP_SETUP(missing);
	ASSERT_NE((unsigned int)EV_NONE, elf_version(EV_CURRENT));
	self->maps = open_maps(0);
	self->fd = variant->on_ext4 ?
		   open(SCRATCH_DISK "/elf", O_RDWR | O_CREAT | O_CLOEXEC, 0700) :
		   memfd_create("elf", MFD_CLOEXEC);
	self->addr = (uintptr_t)mmap(NULL, page_size(), PROT_READ, MAP_SHARED, self->fd, 0);
	add_bases();
}

FIXTURE_TEARDOWN(file)
{
}

/* The scan first: a query would read what is not resident. */
TEST_F_TIMEOUT(file, has_the_build_id_that_libelf_finds, SOAK_TIMEOUT)
{
	const size_t made = variant->on_ext4 ? 0 : nr_fields(MADE_BASES);
	const struct soak soak = begin_soak();
	unsigned long n, found = 0;
	struct image image = {};

	for (n = 0; n < made || !soak_is_over(&soak, n); n++) {
		const struct base *const base = make_nth(&image, &soak, made, n);
		const struct model model = model_of(&image);
		uint8_t id[BUILD_ID_SIZE];
		bool evicted = false;
		int expected, size;

		ASSERT_TRUE(write_all(self->fd, image.bytes, image.size));
		if (variant->on_ext4 && n % EVICTED_OF == 0)
			evicted = evict_file(self->fd) && image.size;
		expected = evicted ? NOT_READ : (int)model.size;
		size = id_by_scan(self->maps, self->addr, id);
		ASSERT_TRUE(is_id(&model, expected, size, id)) {
			TH_LOG("scan: file %lu, from %s: %d instead of %d bytes", n,
			       base->name, size, expected);
		}
		size = id_by_query(self->maps, self->addr, id);
		ASSERT_TRUE(is_id(&model, model.size, size, id)) {
			TH_LOG("query: file %lu, from %s: %d instead of %zu bytes", n,
			       base->name, size, model.size);
		}
		found += size > 0;
	}
	TH_LOG("%lu files, %lu with a build ID", n, found);
	EXPECT_LT(n / 10, found);
	EXPECT_LT(found, n - n / 10);
}

TEST_HARNESS_MAIN
