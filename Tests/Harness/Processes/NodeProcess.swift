import Foundation
import Glibc
import NIOCore
import NIOPosix

/// A `nuthatch serve` process for one test, on its own ports, stopped on release.
package final class NodeProcess: Sendable {
    /// The error for a node that does not become ready.
    package struct NotReady: Error, CustomStringConvertible {
        /// The node's output so far.
        package let description: String
    }

    /// The data port for clear text.
    package let port: Int
    /// The data port for TLS; 0 without certificates.
    package let securePort: Int
    /// The admin port.
    package let adminPort: Int
    /// The network namespace of the node; `nil` for that of this process.
    private let namespace: NetworkNamespace?
    private let program: Program
    private let ports: [ReservedPort]
    /// True if `/readyz` on ``adminPort`` needs no client certificate.
    private let hasReachableAdminPort: Bool

    /// Starts a node that may fetch from the loopback, and waits until `/readyz` returns 200.
    ///
    /// - Parameters:
    ///   - flags: Flags beside `--listen`, `--admin-listen`, and `--allow-private-origin`.
    ///   - environment: Further environment variables.
    ///   - allowsLoopback: Whether origins on 127.0.0.0/8 may be fetched.
    ///   - certificates: The certificates for TLS on ``securePort``, the first one the default;
    ///     empty for clear text only.
    ///   - isPrivileged: False to drop every capability, as containers and services do.
    ///   - space: The network namespace of the node and its listeners.
    ///   - waits: False to return at once, before ``waitUntilReady()``.
    /// - Throws: `NotReady` with the node's output if it does not become ready.
    package init(
        _ flags: [String] = [], environment: [String: String] = [:], allowsLoopback: Bool = true,
        certificates: [TestAuthority.Leaf] = [], isPrivileged: Bool = true,
        in space: NetworkNamespace? = nil, waits: Bool = true
    ) throws {
        self.namespace = space
        let binary = try Self.binary()
        let before =
            isPrivileged ? [] : ["/usr/bin/setpriv", "--inh-caps=-all", "--bounding-set=-all"]
        let own = allowsLoopback ? ["--allow-private-origin", "127.0.0.0/8"] : []
        ports = try (0..<(certificates.isEmpty ? 2 : 3)).map { _ in try ReservedPort(in: space) }
        port = ports[0].number
        adminPort = ports[1].number
        securePort = certificates.isEmpty ? 0 : ports[2].number
        let admin = flags.contains("--admin-listen") ? "off" : "127.0.0.1:\(adminPort)"
        hasReachableAdminPort = admin != "off" && !flags.contains("--client-ca")
        let command = (try space?.prefix ?? []) + before + [binary]
        program = try Program(
            command[0],
            command.dropFirst() + ["serve", "--admin-listen", admin]
                + Self.listenerFlags(port, securePort, certificates) + own + flags,
            // Work scheduled on a stopped event loop ends the node, too.
            environment: environment.merging(["SWIFTNIO_STRICT": "1"]) { own, _ in own })
        if waits { try waitUntilReady() }
    }

    /// Returns a node without further flags that the tests of this process share.
    ///
    /// Each test must use its own URLs and make no claim about the node as a whole.
    package static func shared() throws -> NodeProcess {
        if let node = sharedNode.value, node.isRunning { return node }
        let node = try NodeProcess()
        sharedNode.value = node
        ExitHandlers.atExit { sharedNode.value = nil }
        return node
    }

    private static let sharedNode = LockedBox<NodeProcess?>(nil)

    /// Waits until `/readyz` returns 200 on the admin port, or on the data port if the admin port
    /// requires a certificate.
    ///
    /// No client connection is left open that a test would have to count.
    ///
    /// - Throws: `NotReady`.
    package func waitUntilReady() throws {
        var isReady = false
        _ = Deadline.seconds(30).waitUntil {
            guard isRunning else { return true }
            let response =
                hasReachableAdminPort
                ? try? connectAdmin().get("/readyz") : try? get("/readyz", seconds: 5)
            isReady = response?.status == 200
            return isReady
        }
        guard isReady, isRunning else {
            program.kill()
            throw NotReady(description: "the node did not come up: \(output)")
        }
    }

    /// Starts the nodes of a cluster concurrently.
    ///
    /// No node forms a cluster before all its peers have replied.
    ///
    /// - Returns: The nodes, all ready.
    package static func cluster(
        of count: Int, _ start: (_ index: Int, _ waits: Bool) throws -> NodeProcess
    ) throws -> [NodeProcess] {
        let nodes = try (0..<count).map { try start($0, false) }
        do {
            for node in nodes { try node.waitUntilReady() }
        } catch {
            // The missing node may be another than the one that reported the error.
            let outputs = nodes.map { "runs: \($0.isRunning)\n\($0.output)" }
            throw NotReady(description: outputs.joined(separator: "\n"))
        }
        return nodes
    }

    /// Returns the flags for the listeners and their certificates.
    private static func listenerFlags(
        _ port: Int, _ securePort: Int, _ certificates: [TestAuthority.Leaf]
    ) -> [String] {
        guard !certificates.isEmpty else { return ["--listen", "127.0.0.1:\(port)"] }
        let listen = ["--listen", "127.0.0.1:\(securePort)", "--plain-listen", "127.0.0.1:\(port)"]
        return listen
            + certificates.flatMap { ["--tls-certificate", $0.certificate, "--tls-key", $0.key] }
    }

    /// Returns the path of the binary beside the test bundle, or of `OUTSIDE_TESTS_NODE` if set.
    package static func binary() throws -> String {
        if let named = ProcessInfo.processInfo.environment["OUTSIDE_TESTS_NODE"] { return named }
        return try built("nuthatch")
    }

    /// Returns the path of a program beside the test bundle.
    package static func built(_ name: String) throws -> String {
        let bundle = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        let binary = bundle.deletingLastPathComponent().appendingPathComponent(name).path
        guard FileManager.default.isExecutableFile(atPath: binary) else {
            throw Program.NotFound(name: binary)
        }
        return binary
    }

    /// Runs `nuthatch` with arguments to its end.
    package static func run(
        _ arguments: [String], environment: [String: String] = [:], seconds: Double = 20
    ) throws -> ProgramResult {
        try Program.run(try binary(), arguments, environment: environment, seconds: seconds)
    }

    /// The text of standard output and standard error so far.
    package var output: String { String(decoding: program.output, as: UTF8.self) + program.errors }

    /// The text of standard output so far.
    package var standardOutput: String { String(decoding: program.output, as: UTF8.self) }

    /// The lines of standard error so far.
    package var lines: [String] {
        program.errors.split(separator: "\n").map(String.init)
    }

    /// Returns the number of lines of standard error that contain all of `words`.
    package func lineCount(containing words: String...) -> Int {
        lines.count { line in words.allSatisfy(line.contains) }
    }

    /// True while the process runs.
    package var isRunning: Bool { program.isRunning }

    /// The process id.
    package var identifier: Int32 { program.identifier }

    /// Requests a graceful stop (SIGTERM).
    package func terminate() { program.terminate() }

    /// Requests a stop as from a terminal (SIGINT).
    package func interrupt() { program.signal(SIGINT) }

    /// Requests a reload of the configuration (SIGHUP).
    package func hangUp() { program.hangUp() }

    /// Suspends the process (SIGSTOP).
    package func pause() { program.signal(SIGSTOP) }

    /// Resumes the process (SIGCONT).
    package func resume() { program.signal(SIGCONT) }

    /// Kills the process (SIGKILL) and waits for its end.
    package func kill() { program.kill() }

    /// Waits for the process to end and returns its exit status, or `nil` on timeout.
    package func waitForExit(seconds: Double = 60) -> Int? { program.wait(seconds: seconds) }

    /// Requests a graceful stop, waits for the end and returns the exit status, or `nil` on
    /// timeout.
    package func stop(seconds: Double = 60) -> Int? {
        terminate()
        return waitForExit(seconds: seconds)
    }

    /// Opens a connection to the data port.
    package func connect(receiveBufferBytes: CInt? = nil) throws -> HTTPConnection {
        try HTTPConnection(port: port, receiveBufferBytes: receiveBufferBytes, in: namespace)
    }

    /// Opens a connection to the admin port.
    package func connectAdmin() throws -> HTTPConnection {
        try HTTPConnection(port: adminPort, in: namespace)
    }

    /// Sends one request on a new connection.
    package func get(
        _ target: String, method: String = "GET", host: String = "localhost",
        fields: [String] = [], expecting: TestImage? = nil, seconds: Double = 30
    ) throws -> Response {
        try connect().get(
            target, method: method, host: host, fields: fields, expecting: expecting,
            seconds: seconds)
    }
}

extension NodeProcess {
    /// The kernel's statistics of the process; `nil` once it has ended.
    private var statistics: ProcessStatistics? { try? ProcessStatistics(of: identifier) }

    /// Resident memory now, in bytes.
    package var residentBytes: Int { statistics?.residentBytes ?? 0 }

    /// Peak resident memory, in bytes.
    package var residentBytesMax: Int { statistics?.residentBytesMax ?? 0 }

    /// Number of open descriptors.
    package var descriptorCount: Int { statistics?.descriptors ?? 0 }

    /// Number of entries on disk; -1 if the node does not report it.
    package var diskEntries: Double { metric("nuthatch_disk_entries") ?? -1 }

    /// Number of entries that are still to be handed off; `nil` if the node does not report it.
    package var offersPending: Double? {
        guard let waiting = metric("nuthatch_offers_pending{state=\"waiting\"}"),
            let open = metric("nuthatch_offers_pending{state=\"open\"}")
        else { return nil }
        return waiting + open
    }

    /// Returns the value of a metric or of a labelled series, as in `/metrics`.
    package func metric(_ series: String) -> Double? {
        guard let page = try? connectAdmin().get("/metrics").text else {
            return nil
        }
        let line = page.split(separator: "\n").first { $0.hasPrefix(series + " ") }
        return line.flatMap { Double($0.dropFirst(series.count + 1)) }
    }

    /// Returns a JSON document of the admin port.
    ///
    /// - Throws: `NotDocument` if the response is not 200 or is no JSON object.
    package func document(_ path: String) throws -> [String: Any] {
        let response = try connectAdmin().get(path)
        guard response.status == 200, let document = response.document else {
            throw NotDocument(path: path, response: response)
        }
        return document
    }

    /// The error for a response that is no JSON document.
    package struct NotDocument: Error {
        let path: String
        let response: Response
    }
}

extension NodeProcess {
    /// True while the node reports that it may lack a purge.
    package var isFenced: Bool { metric("nuthatch_fenced") != 0 }

    /// True once the node is a voter and proven to know every purge.
    package var isReadyUnfenced: Bool {
        (try? connectAdmin().get("/readyz?unfenced"))?.status == 200
    }

    /// True if the node is proven to know every purge and the voter set has at least `count`
    /// members.
    package func isCurrent(among count: Int) -> Bool {
        !isFenced && (metric("nuthatch_members_counted") ?? 0) >= Double(count)
    }
}
