import Foundation
import Harness

/// A tmpfs on a folder of its own, unmounted on release; requires the privilege to mount.
final class Mount {
    let folder: URL

    /// True if this process can mount a tmpfs.
    static let isPossible: Bool = (try? Mount(size: "1m")) != nil

    init(size: String) throws {
        folder = try Program.temporaryFolder()
        try Self.run("mount", "-t", "tmpfs", "-o", "size=\(size)", "tmpfs", folder.path)
    }

    deinit {
        // Mounts on top of it are removed first.
        while (try? Self.run("umount", folder.path)) != nil {}
        try? FileManager.default.removeItem(at: folder)
    }

    func resize(to size: String) throws {
        try Self.run("mount", "-o", "remount,size=\(size)", folder.path)
    }

    /// Makes the file system read-only below this folder, even while files in it are open.
    ///
    /// A file system with files open for writing cannot be remounted read-only, so the same file
    /// system is mounted over itself, read-only.
    func cover() throws {
        try Self.run("mount", "--bind", folder.path, folder.path)
        try Self.run("mount", "-o", "remount,bind,ro", folder.path)
    }

    func uncover() throws {
        try Self.run("umount", folder.path)
    }

    private struct Refused: Error {
        let errors: String
    }

    private static func run(_ name: String, _ arguments: String...) throws {
        let result = try Program.run(try Program.find(name), arguments)
        guard result.status == 0 else { throw Refused(errors: result.errors) }
    }
}
