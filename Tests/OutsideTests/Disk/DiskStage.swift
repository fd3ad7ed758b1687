import Foundation
import Harness
import Testing

/// An origin, and a node with a disk cache that can be killed and started again.
final class DiskStage {
    let origin: ScriptedOrigin
    /// What `--cache-dir` names.
    let directory: URL
    private(set) var node: NodeProcess
    private let flags: [String]

    init(_ flags: String..., directory: URL? = nil) throws {
        origin = try ScriptedOrigin()
        let directory = try directory ?? Program.temporaryFolder()
        self.directory = directory
        self.flags = flags
        node = try Self.start(flags, directory)
    }

    deinit {
        node.kill()
        try? FileManager.default.removeItem(at: directory)
    }

    private static func start(_ flags: [String], _ directory: URL) throws -> NodeProcess {
        try NodeProcess(["--cache-dir", directory.path] + flags)
    }

    /// Kills the node (SIGKILL), or asks it to stop, and starts it again; flags are added.
    func restart(gently isGentle: Bool = false, _ more: String...) throws {
        if isGentle {
            node.terminate()
            #expect(node.waitForExit() == 0)
        } else {
            node.kill()
        }
        node = try Self.start(flags + more, directory)
    }

    func get(_ path: String, expecting: TestImage? = nil) throws -> Response {
        try node.get(ImageTarget.of(origin.url(path)), expecting: expecting)
    }

    /// How often the origin was asked for a path.
    func fetches(_ path: String) -> Int { origin.requests(path).count }

    /// Returns when everything that is to be kept is written.
    func settle() throws {
        let isSettled = try Deadline.seconds(30).reached {
            try figure("nuthatch_disk_queued_bytes") == 0
        }
        try #require(isSettled)
    }

    func figure(_ series: String) throws -> Double {
        try #require(node.figure(series))
    }

    /// Bytes of all blocks below the cache directory, as du(1) counts them.
    func usedBytes() throws -> Int {
        try PeakUse.bytes(below: directory)
    }
}

extension Response {
    /// Where a hit came from.
    var detail: String? { cacheStatus["detail"] }
}
