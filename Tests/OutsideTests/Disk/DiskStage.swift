import Foundation
import Harness
import Testing

/// An origin, and a node with a disk cache that can be killed and started again.
final class DiskStage {
    let origin: ScriptedOrigin
    /// The directory of `--cache-dir`.
    let directory: URL
    private(set) var node: NodeProcess
    private let flags: [String]
    private let isPrivileged: Bool

    init(_ flags: String..., directory: URL? = nil, isPrivileged: Bool = true) throws {
        origin = try ScriptedOrigin()
        let directory = try directory ?? Program.temporaryFolder()
        self.directory = directory
        self.flags = flags
        self.isPrivileged = isPrivileged
        node = try Self.start(flags, directory, isPrivileged)
    }

    deinit {
        node.kill()
        try? FileManager.default.removeItem(at: directory)
    }

    private static func start(
        _ flags: [String], _ directory: URL, _ isPrivileged: Bool
    ) throws -> NodeProcess {
        try NodeProcess(["--cache-dir", directory.path] + flags, isPrivileged: isPrivileged)
    }

    /// Kills the node (SIGKILL) or stops it gracefully, and starts it again with additional flags.
    func restart(gently isGentle: Bool = false, _ more: String...) throws {
        stop(gently: isGentle)
        node = try Self.start(flags + more, directory, isPrivileged)
    }

    /// Starts the stopped node and kills it once it has locked its directory.
    func startAndKill() throws {
        let identity = directory.appending(path: "node-0/identity")
        let former = try Data(contentsOf: identity)
        let port = try ReservedPort.forProcess()
        let program = try Program(
            try NodeProcess.binary(),
            [
                "serve", "--listen", "127.0.0.1:\(port)", "--admin-listen", "off",
                "--cache-dir", directory.path,
            ] + flags)
        // Polled without a pause: the next steps take milliseconds.
        _ = try Deadline.seconds(30).waitUntil(every: 0) {
            try Data(contentsOf: identity) != former || !program.isRunning
        }
        program.kill()
        #expect(try Data(contentsOf: identity) != former, "\(program.errors)")
    }

    /// Kills the node or stops it gracefully, and returns when it has ended.
    func stop(gently isGentle: Bool) {
        guard isGentle else { return node.kill() }
        #expect(node.stop() == 0)
    }

    func get(_ path: String, expecting: TestImage? = nil) throws -> Response {
        try node.get(ImageRequestTarget.forURL(origin.url(path)), expecting: expecting)
    }

    /// Returns the number of origin requests for a path.
    func fetches(_ path: String) -> Int { origin.requests(path).count }

    /// Waits until everything that is to be kept is written.
    func settle() throws {
        let isSettled = try Deadline.seconds(30).waitUntil {
            // A client has the complete response a moment before it is stored.
            try figure("nuthatch_fills_in_flight") == 0
                && figure("nuthatch_disk_queued_bytes") == 0
        }
        try #require(isSettled)
    }

    func figure(_ series: String) throws -> Double {
        try #require(node.metric(series))
    }

    /// Waits until the node reports that its disk tier is on or off.
    func wait(
        untilUp isUp: Bool, seconds: Double = 60, at location: SourceLocation = #_sourceLocation
    ) throws {
        let isReached = try Deadline.seconds(seconds).waitUntil {
            try figure("nuthatch_disk_up") == (isUp ? 1 : 0)
        }
        try #require(isReached, "\(node.output)", sourceLocation: location)
    }

    /// Returns the number of lines of the node's log that contain all of `words`.
    func said(_ words: String...) -> Int {
        node.output.split(separator: "\n").count { line in words.allSatisfy(line.contains) }
    }

    /// Returns the bytes of all blocks below the cache directory, as du(1) counts them.
    func usedBytes() throws -> Int {
        try PeakDiskUsage.bytes(below: directory)
    }
}

extension Response {
    /// The source of a hit.
    var detail: String? { cacheStatus["detail"] }
}
