import Foundation

/// Makes files hang in a process it is loaded into, from a moment on: writing them, and reading
/// them where that was not to wait.
package final class HungDisk: Sendable {
    private let folder: TemporaryFolder
    private let preload: Preload

    /// Compiles the library; the disk works.
    ///
    /// - Throws: What keeps it from being compiled.
    package init() throws {
        folder = try TemporaryFolder()
        preload = try Preload(Self.source, in: folder.url)
    }

    private var writeMarker: URL { folder.appending(path: "hangs") }
    private var readMarker: URL { folder.appending(path: "reads-hang") }

    /// The variables that make a process depend on this.
    package var environment: [String: String] {
        preload.environment([
            "HUNG_DISK_SIGN": writeMarker.path, "HUNG_DISK_READ_SIGN": readMarker.path,
        ])
    }

    /// From now on nothing is written, and nothing is read either if `reads` hang too.
    package func hang(reads: Bool = true) throws {
        if reads { try Data().write(to: readMarker) }
        try Data().write(to: writeMarker)
    }

    /// From now on everything that waits is done.
    package func resume() throws {
        try? FileManager.default.removeItem(at: readMarker)
        try FileManager.default.removeItem(at: writeMarker)
    }

    /// The library in C: positioned writes, syncs, and reads that are not to wait do not return
    /// while a file is there, one for either.
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
