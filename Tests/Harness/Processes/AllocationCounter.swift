import Foundation

/// A counter of the memory allocations of the processes it is loaded into.
package final class AllocationCounter: Sendable {
    private let folder: TemporaryFolder
    private let preload: Preload

    /// Compiles the library and creates a count of zero.
    ///
    /// - Throws: An error if the library cannot be compiled.
    package init() throws {
        folder = try TemporaryFolder()
        preload = try Preload(Self.source, in: folder.url)
        try Data(count: 8).write(to: countFile)
    }

    private var countFile: URL { folder.appending(path: "count") }

    /// The environment variables that make a process count.
    package var environment: [String: String] {
        preload.environment(["ALLOCATION_COUNT_FILE": countFile.path])
    }

    /// Allocations so far, over all processes started with the environment.
    package var count: Int {
        let bytes = (try? Data(contentsOf: countFile)) ?? Data()
        return Int(bytes.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}

extension AllocationCounter {
    /// The C library: every allocating call increments a number in a shared file mapping.
    ///
    /// Until its start function has mapped the file, calls increment a number that is not used. It
    /// calls glibc's own functions beneath `malloc`, so that it never looks up a symbol during an
    /// allocation.
    static let source = """
        #include <errno.h>
        #include <fcntl.h>
        #include <stdatomic.h>
        #include <stddef.h>
        #include <stdint.h>
        #include <stdlib.h>
        #include <sys/mman.h>
        #include <unistd.h>

        extern void *__libc_malloc(size_t);
        extern void *__libc_calloc(size_t, size_t);
        extern void *__libc_realloc(void *, size_t);
        extern void *__libc_memalign(size_t, size_t);

        static _Atomic uint64_t thrown_away;
        static _Atomic uint64_t *_Atomic number = &thrown_away;

        static void count(void) {
            atomic_fetch_add_explicit(
                atomic_load_explicit(&number, memory_order_relaxed), 1, memory_order_relaxed);
        }

        __attribute__((constructor)) static void start(void) {
            const char *path = getenv("ALLOCATION_COUNT_FILE");
            int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
            if (file < 0) return;
            void *map = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            close(file);
            if (map != MAP_FAILED) atomic_store(&number, map);
        }

        void *malloc(size_t size) { count(); return __libc_malloc(size); }
        void *calloc(size_t items, size_t size) { count(); return __libc_calloc(items, size); }
        void *realloc(void *old, size_t size) { count(); return __libc_realloc(old, size); }
        void *memalign(size_t at, size_t size) { count(); return __libc_memalign(at, size); }
        void *aligned_alloc(size_t at, size_t size) { count(); return __libc_memalign(at, size); }

        int posix_memalign(void **result, size_t at, size_t size) {
            count();
            void *block = __libc_memalign(at, size);
            if (!block) return ENOMEM;
            *result = block;
            return 0;
        }

        """
}
