import Foundation

/// A library that makes file writes, and non-blocking reads, of a process hang on demand.
package final class HungDisk: Sendable {
    private let folder: TemporaryFolder
    private let preload: Preload

    /// Compiles the library; the disk works at first.
    ///
    /// - Throws: An error if the library cannot be compiled.
    package init() throws {
        folder = try TemporaryFolder()
        preload = try Preload(Self.source, in: folder.url)
    }

    private var writeMarker: URL { folder.appending(path: "hangs") }
    private var readMarker: URL { folder.appending(path: "reads-hang") }

    /// The environment variables that load the library into a process.
    package var environment: [String: String] {
        preload.environment([
            "HUNG_DISK_SIGN": writeMarker.path, "HUNG_DISK_READ_SIGN": readMarker.path,
        ])
    }

    /// Blocks all writes from now on, and all non-blocking reads too if `reads`.
    package func hang(reads: Bool = true) throws {
        if reads { try Data().write(to: readMarker) }
        try Data().write(to: writeMarker)
    }

    /// Lets all blocked calls continue.
    package func resume() throws {
        try? FileManager.default.removeItem(at: readMarker)
        try FileManager.default.removeItem(at: writeMarker)
    }

    /// The C library: positioned writes, syncs and non-blocking reads do not return while a file
    /// exists, one file for writes and one for reads.
    private static let source = """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <poll.h>
        #include <stdlib.h>
        #include <sys/types.h>
        #include <sys/uio.h>
        #include <unistd.h>

        static void hang_at(const char *sign) {
            while (sign && access(sign, F_OK) == 0) poll(NULL, 0, 10);
        }

        static void hang(void) { hang_at(getenv("HUNG_DISK_SIGN")); }

        ssize_t pwrite64(int file, const void *bytes, size_t count, off_t offset) {
            hang();
            return ((ssize_t (*)(int, const void *, size_t, off_t))
                dlsym(RTLD_NEXT, "pwrite64"))(file, bytes, count, offset);
        }

        ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
            return pwrite64(file, bytes, count, offset);
        }

        ssize_t preadv2(int file, const struct iovec *parts, int count, off_t offset, int flags) {
            hang_at(getenv("HUNG_DISK_READ_SIGN"));
            return ((ssize_t (*)(int, const struct iovec *, int, off_t, int))
                dlsym(RTLD_NEXT, "preadv2"))(file, parts, count, offset, flags);
        }

        int fsync(int file) {
            hang();
            return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
        }

        int fdatasync(int file) {
            hang();
            return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file);
        }

        """
}
