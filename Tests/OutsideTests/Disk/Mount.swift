import Foundation
import Harness

/// A tmpfs at a folder of its own, gone with the test; for those who may mount.
final class Mount {
    let folder: URL

    /// Whether a tmpfs can be mounted here.
    static let isPossible: Bool = (try? Mount(size: "1m")) != nil

    init(size: String) throws {
        folder = try Program.temporaryFolder()
        try Self.run("mount", "-t", "tmpfs", "-o", "size=\(size)", "tmpfs", folder.path)
    }

    deinit {
        // Whatever lies upon it goes first.
        while (try? Self.run("umount", folder.path)) != nil {}
        try? FileManager.default.removeItem(at: folder)
    }

    func resize(to size: String) throws {
        try Self.run("mount", "-o", "remount,size=\(size)", folder.path)
    }

    /// Lets nothing be written below it, though files of it may be open.
    ///
    /// A file system with such files cannot be made read-only itself; so the same one is laid upon
    /// it, read-only.
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
