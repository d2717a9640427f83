/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * libprocmap for C++17: owners for the handles and results of <procmap.h>. Errors are
 * thrown as std::system_error, with the number of errno and the function's name.
 *
 * The namespace is libprocmap, since struct procmap has the other name. Owners
 * can be moved, not copied. Functions of <procmap.h> that are not here take the result of
 * get(), and an owner takes what they open. <procmap_table.h> is for C++, too.
 *
 * Mappings, walks and iterators are valid only as long as their owner. Functions that
 * return one are deleted for temporary owners: before C++23, a range-based for loop
 * over handle::open_self().mappings() would use a handle that is already closed.
 */
#ifndef PROCMAP_HPP
#define PROCMAP_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <procmap.h>

namespace libprocmap {

/* Returns @ret, or throws it if it is a negative errno. */
inline int check(int ret, const char *function)
{
	if (ret < 0)
		throw std::system_error(-ret, std::generic_category(), function);
	return ret;
}

inline std::string_view name_of(const procmap_mapping &mapping)
{
	return { mapping.name, mapping.name_len };
}

/* The file offset of an address in the mapping. */
inline std::uint64_t offset_of(const procmap_mapping &mapping, std::uint64_t addr)
{
	return mapping.offset + (addr - mapping.start);
}

/*
 * std::iterator_traits needs these of an iterator. It returns pointers: a copy of a
 * mapping would not have the fields of a later version, nor a name of its own.
 */
struct iterates_mappings {
	using iterator_category = std::input_iterator_tag;
	using value_type = const procmap_mapping *;
	using difference_type = std::ptrdiff_t;
	using pointer = const value_type *;
	using reference = value_type;
};

/*
 * For a range-based for loop: see handle::mappings(), handle::find_name() and
 * handle::find_file().
 */
class walk {
public:
	struct sentinel {};

	class iterator : public iterates_mappings {
	public:
		explicit iterator(const walk &walk) : walk_(&walk)
		{
			++*this;
		}

		reference operator*() const { return found_; }

		iterator &operator++()
		{
			if (!walk_->next(cursor_, unknown_, found_))
				found_ = nullptr;
			return *this;
		}

		void operator++(int) { ++*this; }
		bool operator==(sentinel) const { return !found_; }
		bool operator!=(sentinel) const { return found_; }

	private:
		const walk *walk_;
		std::uint64_t cursor_ = 0;
		int unknown_ = 0;
		const procmap_mapping *found_ = nullptr;
	};

	walk(::procmap *procmap, unsigned int flags)
		: procmap_(procmap), flags_(flags)
	{
	}

	walk(::procmap *procmap, std::string pattern, procmap_match match,
	     unsigned int flags)
		: procmap_(procmap), flags_(flags), function_("procmap_find_name"),
		  pattern_(std::move(pattern)), match_(match)
	{
	}

	walk(::procmap *procmap, procmap_file *file, unsigned int flags)
		: procmap_(procmap), flags_(flags), function_("procmap_find_file"),
		  file_(file)
	{
	}

	iterator begin() const & { return iterator(*this); }
	iterator begin() const && = delete;
	sentinel end() const { return {}; }

private:
	int call(std::uint64_t &cursor, const procmap_mapping *&found) const
	{
		if (file_)
			return procmap_find_file(procmap_, *file_, &cursor, flags_, &found);
		return pattern_ ? procmap_find_name(procmap_, pattern_->c_str(), match_,
						    &cursor, flags_, &found) :
				  procmap_next(procmap_, &cursor, flags_, &found);
	}

	/* Returns false at the end. Those that are not known are passed over until then. */
	bool next(std::uint64_t &cursor, int &unknown, const procmap_mapping *&found) const
	{
		int ret;

		while ((ret = call(cursor, found)) == -EXDEV)
			unknown = ret;
		check(ret == -ENOENT ? unknown : ret, function_);
		return !ret;
	}

	::procmap *procmap_;
	unsigned int flags_;
	const char *function_ = "procmap_next";
	std::optional<std::string> pattern_;
	procmap_match match_ = PROCMAP_EXACT;
	std::optional<procmap_file *> file_;
};

/* The result of handle::resolve(). It is empty by default, and after a move. */
class resolved {
public:
	/* Own a result of procmap_resolve(). */
	explicit resolved(const procmap_resolved *result = nullptr)
		: resolved_(result)
	{
	}

	/* Never nullptr. */
	const procmap_resolved *get() const &
	{
		static const procmap_resolved empty = {};

		return resolved_ ? resolved_.get() : &empty;
	}

	const procmap_resolved *operator->() const & { return get(); }
	const procmap_resolved &operator*() const & { return *get(); }

	const procmap_resolved *get() const && = delete;
	const procmap_resolved *operator->() const && = delete;
	const procmap_resolved &operator*() const && = delete;

private:
	struct free {
		void operator()(const procmap_resolved *resolved) const
		{
			procmap_free_resolved(resolved);
		}
	};

	std::unique_ptr<const procmap_resolved, free> resolved_;
};

/* To be changed further, as far as there are other options. */
inline procmap_options options_with(procmap_method method)
{
	procmap_options options = {};

	options.size = sizeof(options);
	options.method = method;
	return options;
}

class file;

/* A handle on the mappings of a process: see procmap_open_pid(3). */
class handle {
public:
	static handle open_pid(pid_t pid, const procmap_options &options)
	{
		::procmap *opened;

		check(procmap_open_pid(pid, &options, &opened), "procmap_open_pid");
		return handle(opened);
	}

	static handle open_pid(pid_t pid,
			       procmap_method method = PROCMAP_ANY_METHOD)
	{
		return open_pid(pid, options_with(method));
	}

	static handle open_self(const procmap_options &options)
	{
		::procmap *opened;

		check(procmap_open_self(&options, &opened), "procmap_open_self");
		return handle(opened);
	}

	static handle open_self(procmap_method method = PROCMAP_ANY_METHOD)
	{
		return open_self(options_with(method));
	}

	/* @fd is of a maps file, or of a directory of a process in procfs. It is duplicated. */
	static handle open_fd(int fd, const procmap_options &options)
	{
		::procmap *opened;

		check(procmap_open_fd(fd, &options, &opened), "procmap_open_fd");
		return handle(opened);
	}

	static handle open_fd(int fd, procmap_method method = PROCMAP_ANY_METHOD)
	{
		return open_fd(fd, options_with(method));
	}

	/* @text has to stay valid as long as the handle is in use. */
	static handle open_text(std::string_view text)
	{
		::procmap *opened;

		check(procmap_open_text(text.data(), text.size(), nullptr, &opened),
		      "procmap_open_text");
		return handle(opened);
	}

	template <typename Text, typename = std::enable_if_t<
			std::is_same_v<std::remove_const_t<Text>, std::string>>>
	static handle open_text(Text &&text) = delete;

	/* Own a handle of the C interface. */
	explicit handle(::procmap *procmap) : procmap_(procmap)
	{
	}

	::procmap *get() const { return procmap_.get(); }

	/* Go on with the program that the process has executed. */
	void reopen() { check(procmap_reopen(get()), "procmap_reopen"); }

	procmap_method method() const
	{
		return static_cast<procmap_method>(
			check(procmap_get_method(get()), "procmap_get_method"));
	}

	/*
	 * The mapping at an address, or nullptr. It is valid until the next call with
	 * this handle.
	 */
	const procmap_mapping *find(std::uint64_t addr, unsigned int flags = 0) &
	{
		const procmap_mapping *found;
		const int ret = procmap_find(get(), addr, flags, &found);

		if (ret == -ENOENT)
			return nullptr;
		check(ret, "procmap_find");
		return found;
	}

	const procmap_mapping *find(std::uint64_t, unsigned int = 0) && = delete;

	/* All mappings that pass the filters, in rising order. */
	walk mappings(unsigned int flags = 0) & { return walk(get(), flags); }
	walk mappings(unsigned int = 0) && = delete;

	/* Those of them with a name: see procmap_find_name(3). */
	walk find_name(std::string pattern, procmap_match match = PROCMAP_EXACT,
		       unsigned int flags = 0) &
	{
		return walk(get(), std::move(pattern), match, flags);
	}

	walk find_name(std::string, procmap_match = PROCMAP_EXACT,
		       unsigned int = 0) && = delete;

	/*
	 * Those of a file, which has to stay: see procmap_find_file(3). At the end, EXDEV is
	 * thrown if others may be of the file, too.
	 */
	walk find_file(file &file, unsigned int flags = 0) &;
	walk find_file(file &, unsigned int = 0) && = delete;

	/* Without addresses, the result is empty. */
	resolved resolve(const std::vector<std::uint64_t> &addrs,
			 unsigned int flags = 0)
	{
		const procmap_resolved *result;

		if (addrs.empty())
			return resolved();
		check(procmap_resolve(get(), addrs.data(), addrs.size(), flags,
				      &result), "procmap_resolve");
		return resolved(result);
	}

private:
	struct close {
		void operator()(::procmap *procmap) const
		{
			procmap_close(procmap);
		}
	};

	std::unique_ptr<::procmap, close> procmap_;
};

/* An opened file, for ELF addresses and its build ID: see procmap_open_file(3). */
class file {
public:
	/* Of a mapping of the handle, or of a snapshot or table of its process. */
	file(handle &handle, const procmap_mapping &mapping)
	{
		open(handle.get(), mapping, nullptr, nullptr);
	}

	/* Without a process, by the name below @root; procfs is at @proc. */
	explicit file(const procmap_mapping &mapping, const char *root = nullptr,
		      const char *proc = nullptr)
	{
		open(nullptr, mapping, root, proc);
	}

	/* Own a file of the C interface. */
	explicit file(procmap_file *opened) : file_(opened)
	{
	}

	/* @fd is duplicated. */
	explicit file(int fd)
	{
		procmap_file *opened;

		check(procmap_open_file_fd(fd, &opened), "procmap_open_file_fd");
		file_.reset(opened);
	}

	procmap_file *get() const { return file_.get(); }

	int fd() const { return check(procmap_file_fd(get()), "procmap_file_fd"); }

	/* The address in the ELF file of an address in a mapping of it. */
	std::uint64_t address(const procmap_mapping &mapping, std::uint64_t addr)
	{
		std::uint64_t address;

		check(procmap_file_mapped_address(get(), &mapping, addr, &address),
		      "procmap_file_mapped_address");
		return address;
	}

	/* The same at a file offset, which two mappings of a page may have in common. */
	std::uint64_t address(std::uint64_t offset)
	{
		std::uint64_t address;

		check(procmap_file_address(get(), offset, &address),
		      "procmap_file_address");
		return address;
	}

	/* It is empty if there is none. */
	std::vector<std::uint8_t> build_id()
	{
		std::vector<std::uint8_t> id(PROCMAP_BUILD_ID_MAX);

		const int size = check(procmap_file_build_id(get(), id.data()),
				       "procmap_file_build_id");

		id.resize(static_cast<std::size_t>(size));
		return id;
	}

private:
	void open(::procmap *procmap, const procmap_mapping &mapping, const char *root,
		  const char *proc)
	{
		procmap_file_options options = {};
		procmap_file *opened;

		options.size = sizeof(options);
		options.root = root;
		options.proc = proc;
		check(procmap_open_file(procmap, &mapping, &options, &opened),
		      "procmap_open_file");
		file_.reset(opened);
	}

	struct close {
		void operator()(procmap_file *file) const { procmap_close_file(file); }
	};

	std::unique_ptr<procmap_file, close> file_;
};

inline walk handle::find_file(file &file, unsigned int flags) &
{
	return walk(get(), file.get(), flags);
}

/*
 * All mappings of a process at one time: see procmap_snapshot_take(3). After a move,
 * there are none.
 */
class snapshot {
public:
	class iterator : public iterates_mappings {
	public:
		iterator(const snapshot &snapshot, std::size_t index)
			: snapshot_(&snapshot), index_(index)
		{
		}

		reference operator*() const { return (*snapshot_)[index_]; }
		iterator &operator++()
		{
			index_++;
			return *this;
		}

		iterator operator++(int)
		{
			const iterator before = *this;

			index_++;
			return before;
		}

		bool operator==(const iterator &other) const
		{
			return index_ == other.index_;
		}

		bool operator!=(const iterator &other) const
		{
			return index_ != other.index_;
		}

	private:
		const snapshot *snapshot_;
		std::size_t index_;
	};

	explicit snapshot(handle &handle, unsigned int flags = 0)
	{
		procmap_snapshot *taken;

		check(procmap_snapshot_take(handle.get(), flags, &taken),
		      "procmap_snapshot_take");
		snapshot_.reset(taken);
	}

	procmap_snapshot *get() const { return snapshot_.get(); }

	/*
	 * Bring it up to date, by the handle that it was taken from. Returns whether
	 * it has changed; mappings that were returned before are invalid then.
	 */
	bool refresh(handle &handle)
	{
		return check(procmap_snapshot_refresh(get(), handle.get()),
			     "procmap_snapshot_refresh");
	}

	bool is_consistent() const
	{
		return get() && procmap_snapshot_is_consistent(get());
	}

	std::size_t size() const
	{
		return get() ? procmap_snapshot_count(get()) : 0;
	}

	/* nullptr if @index is not less than size(). */
	const procmap_mapping *operator[](std::size_t index) const &
	{
		return procmap_snapshot_at(get(), index);
	}

	iterator begin() const & { return iterator(*this, 0); }
	iterator end() const & { return iterator(*this, size()); }

	/* The mapping at an address, or nullptr. */
	const procmap_mapping *find(std::uint64_t addr) const &
	{
		return get() ? procmap_snapshot_find(get(), addr) : nullptr;
	}

	const procmap_mapping *operator[](std::size_t) const && = delete;
	iterator begin() const && = delete;
	iterator end() const && = delete;
	const procmap_mapping *find(std::uint64_t) const && = delete;

	/*
	 * Call @changed(was, is) for each difference to a later snapshot; one of the
	 * two pointers is nullptr for a mapping that has appeared or vanished. What
	 * @changed throws ends the comparison.
	 */
	template <typename Changed>
	void compare(const snapshot &after, Changed &&changed) const
	{
		struct call {
			Changed &changed;
			std::exception_ptr thrown;
		} call = { changed, nullptr };

		const int ret = procmap_snapshot_compare(
			get(), after.get(),
			[](void *context, const procmap_mapping *was,
			   const procmap_mapping *is) {
				auto *const to = static_cast<struct call *>(context);

				try {
					to->changed(was, is);
				} catch (...) {
					to->thrown = std::current_exception();
				}
				return to->thrown ? 1 : 0;
			},
			&call);
		if (call.thrown)
			std::rethrow_exception(call.thrown);
		check(ret, "procmap_snapshot_compare");
	}

private:
	struct free {
		void operator()(procmap_snapshot *snapshot) const
		{
			procmap_snapshot_free(snapshot);
		}
	};

	std::unique_ptr<procmap_snapshot, free> snapshot_;
};

} /* namespace libprocmap */

#endif /* PROCMAP_HPP */
