// SPDX-License-Identifier: GPL-2.0
/*
 * procmap.hpp: what it owns, returns and throws. Addresses are compared with the program's
 * symbols, by dladdr(3).
 */
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <procmap.hpp>

using libprocmap::file;
using libprocmap::handle;
using libprocmap::resolved;
using libprocmap::snapshot;
using libprocmap::walk;

#define EXPECT(x)							\
	do {								\
		if (!(x)) {						\
			std::printf("line %d: %s\n", __LINE__, #x);	\
			std::exit(1);					\
		}							\
	} while (0)

template <typename Function>
static int error_of(Function &&function)
{
	try {
		function();
	} catch (const std::system_error &error) {
		return error.code().value();
	}
	return 0;
}

static std::uint64_t address_of_main();

static void walks_by_flags_and_name()
{
	auto maps = handle::open_text("1000-2000 r-xp 0 0:0 0 /a\n2000-3000 r--p 0 0:0 0 /b\n"
				      "4000-5000 r-xp 0 0:0 0 /b\n");
	std::uint64_t starts = 0;

	for (const auto *mapping : maps.mappings(PROCMAP_EXECUTABLE))
		starts += mapping->start;
	EXPECT(starts == 0x5000);
	for (const auto *mapping : maps.find_name("/[b]", PROCMAP_GLOB))
		starts += mapping->start;
	EXPECT(starts == 0xb000);
	EXPECT(!maps.find(8));
	EXPECT(maps.find(8, PROCMAP_COVERING_OR_NEXT));
}

static void opens_the_mapped_file()
{
	const std::uint64_t addr = address_of_main();
	auto own = handle::open_self();
	const auto *found = own.find(addr);
	const std::uint64_t offset = libprocmap::offset_of(*found, addr);
	const ino_t inode = found->inode;
	const auto mapping = *found;
	const std::string name(libprocmap::name_of(*found));
	std::uint64_t starts = 0;
	file opened(own, *found), alone(*found), of_fd(opened.fd());
	const auto moved = std::move(opened);
	struct stat stat;
	Dl_info info;

	EXPECT(!fstat(moved.fd(), &stat) && stat.st_ino == inode);
	EXPECT(!fstat(alone.fd(), &stat) && stat.st_ino == inode);
	EXPECT(of_fd.build_id() == alone.build_id());
	EXPECT(!::stat(name.c_str(), &stat) && stat.st_ino == inode);
	EXPECT(dladdr(reinterpret_cast<void *>(addr), &info));
	EXPECT(alone.address(offset) == addr - reinterpret_cast<std::uintptr_t>(info.dli_fbase));
	EXPECT(alone.address(mapping, addr) == alone.address(offset));
	for (const auto *of_file : own.find_file(of_fd, PROCMAP_EXECUTABLE))
		starts += of_file->start;
	EXPECT(starts == mapping.start);
	EXPECT(error_of([&] {
		const auto of_none = own.find_file(opened);

		of_none.begin();
	}) == EINVAL);
	EXPECT(error_of([&] { opened.address(0); }) == EINVAL);
	EXPECT(error_of([] { file(-1); }) == EBADF);
	EXPECT(error_of([&] { file(mapping, nullptr, "/nosuch"); }) == ENOENT);
}

static void opens_a_descriptor()
{
	const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	const int directory = open("/proc/self", O_PATH | O_CLOEXEC);
	auto own = handle::open_fd(directory);
	auto without_directory = handle::open_fd(maps, PROCMAP_BY_TEXT);
	procmap_file *opened;

	close(maps);
	close(directory);
	EXPECT(without_directory.method() == PROCMAP_BY_TEXT);
	EXPECT(without_directory.find(address_of_main()));
	EXPECT(error_of([&] { without_directory.reopen(); }) == EINVAL);
	EXPECT(error_of([&] { handle::open_fd(maps); }) == EBADF);
	EXPECT(!procmap_open_path(own.get(), "/etc/passwd", &opened));
	EXPECT(file(opened).fd() >= 0);
}

static void throws_the_error()
{
	auto options = libprocmap::options_with(PROCMAP_ANY_METHOD);

	options.proc = "/nonexistent";
	EXPECT(error_of([&] { handle::open_pid(getpid(), options); }) == ENOENT);
	EXPECT(error_of([&] { handle::open_self(options); }) == ENOENT);
	EXPECT(error_of([] { handle::open_pid(0); }) == EINVAL);
	EXPECT(error_of([] { handle::open_pid(0x7fffffff); }) == ESRCH);
	EXPECT(error_of([] { handle::open_text(""); }) == EINVAL);
	EXPECT(error_of([] { handle::open_text("no maps\n"); }) == EBADMSG);
	EXPECT(error_of([] {
		handle::open_text("1000-2000 r-xp 0 0:0 0\n").reopen();
	}) == EINVAL);
	try {
		handle::open_pid(0);
	} catch (const std::system_error &error) {
		EXPECT(std::string(error.what()).find("procmap_open_pid") !=
		       std::string::npos);
	}
}

static void moves_what_it_owns()
{
	auto first = handle::open_self(PROCMAP_BY_TEXT);
	auto second = std::move(first);

	EXPECT(!first.get() && second.get());
	EXPECT(error_of([&] { first.find(8); }) == EINVAL);
	EXPECT(second.method() == PROCMAP_BY_TEXT);
	second = handle::open_pid(getpid());
	EXPECT(second.find(address_of_main()));
}

static void keeps_and_compares_snapshots()
{
	auto own = handle::open_text("1000-2000 r--s 0 0:0 0\n2000-3000 r--p 0 0:0 0\n");
	auto grown = handle::open_text("1000-2000 r--s 0 0:0 0\n3000-4000 r--s 0 0:0 0\n");
	snapshot before(own, PROCMAP_SHARED);
	const snapshot after(grown, PROCMAP_SHARED);
	unsigned int nr = 0, differences = 0;

	EXPECT(after.find(0x3fff) && !before.find(0x3fff));
	EXPECT(after.size() == 2 && before.size() == 1);
	for (const auto *mapping : after)
		EXPECT(mapping == after[nr++]);
	EXPECT(nr == 2 && !after[nr]);
	before.compare(after, [&](const auto *was, const auto *is) {
		EXPECT(!was && is->start == 0x3000);
		differences++;
	});
	EXPECT(differences == 1);
	try {
		before.compare(after, [](const auto *, const auto *) {
			throw std::runtime_error("enough");
		});
		EXPECT(!"it is thrown on");
	} catch (const std::runtime_error &error) {
		EXPECT(std::string(error.what()) == "enough");
	}
	EXPECT(!before.refresh(own) && before.refresh(grown));
	EXPECT(before.find(0x3fff));
	static_cast<void>(before.is_consistent());
}

static void is_empty_after_a_move()
{
	auto own = handle::open_self();
	snapshot moved(own);
	auto result = own.resolve({ address_of_main() });
	const auto taken = std::move(moved);
	const auto other = std::move(result);

	EXPECT(taken.size() && other->nr_addrs == 1);
	EXPECT(!moved.size() && moved.begin() == moved.end());
	EXPECT(!moved.find(address_of_main()) && !moved.is_consistent());
	EXPECT(error_of([&] { moved.refresh(own); }) == EINVAL);
	EXPECT(error_of([&] {
		moved.compare(taken, [](const auto *, const auto *) {});
	}) == EINVAL);
	EXPECT(!result->nr_addrs && !(*result).mappings);
	result = own.resolve({});
	EXPECT(!result->nr_addrs && !result->mappings);
}

template <typename Argument, typename Use>
static constexpr bool accepts(Use &&)
{
	return std::is_invocable_v<Use, Argument>;
}

/* True if @expression compiles, with x a @type. */
#define ACCEPTS(type, expression)					\
	accepts<type>([](auto &&x) -> decltype(				\
		static_cast<void>(expression)) {})

/* The operator or member is there for an object, and not for a temporary one. */
#define NOT_OF_TEMPORARY(type, member)					\
	static_assert(ACCEPTS(type &, x member) && !ACCEPTS(type, std::move(x) member))

static void refuses_what_a_temporary_owns()
{
	NOT_OF_TEMPORARY(handle, .find(0));
	NOT_OF_TEMPORARY(handle, .mappings());
	NOT_OF_TEMPORARY(handle, .find_name(""));
	NOT_OF_TEMPORARY(handle, .find_file(std::declval<file &>()));
	NOT_OF_TEMPORARY(walk, .begin());
	NOT_OF_TEMPORARY(resolved, ->mappings);
	NOT_OF_TEMPORARY(resolved, .get());
	NOT_OF_TEMPORARY(snapshot, [0]);
	NOT_OF_TEMPORARY(snapshot, .find(0));
	NOT_OF_TEMPORARY(snapshot, .begin());
	NOT_OF_TEMPORARY(snapshot, .end());
	static_assert(ACCEPTS(handle, std::move(x).resolve({})));
	static_assert(ACCEPTS(const resolved &, (*x).mappings));
	static_assert(!ACCEPTS(resolved, (*std::move(x)).mappings));
	static_assert(ACCEPTS(const char *, handle::open_text(x)));
	static_assert(ACCEPTS(std::string_view, handle::open_text(x)));
	static_assert(ACCEPTS(const std::string &, handle::open_text(x)));
	static_assert(ACCEPTS(std::string &, handle::open_text(x)));
	static_assert(!ACCEPTS(std::string, handle::open_text(std::move(x))));
	static_assert(!ACCEPTS(const std::string, handle::open_text(std::move(x))));
}

int main()
{
	refuses_what_a_temporary_owns();
	is_empty_after_a_move();
	walks_by_flags_and_name();
	opens_the_mapped_file();
	opens_a_descriptor();
	throws_the_error();
	moves_what_it_owns();
	keeps_and_compares_snapshots();
	return 0;
}

static std::uint64_t address_of_main()
{
	return reinterpret_cast<std::uintptr_t>(&address_of_main);
}
