import Foundation
import Glibc
import NIOCore
import NIOPosix

/// A `nuthatch serve` of its own for one test, on ports of its own, stopped when released.
package final class NodeProcess: Sendable {
    /// The node did not come up.
    package struct NotReady: Error, CustomStringConvertible {
        /// What it had said by then.
        package let description: String
    }

    /// The port of its data door, in clear text.
    package let port: Int
    /// The port of its data door that speaks TLS; 0 if it has no certificates.
    package let securePort: Int
    /// The port of its admin door.
    package let adminPort: Int
    /// Whose interfaces it has; nil for those of this process.
    private let namespace: NetworkNamespace?
    private let program: Program
    private let ports: [ReservedPort]
    /// Who asks on ``adminPort`` whether it is ready needs no certificate.
    private let hasReachableAdminPort: Bool

    /// Starts a node with an open loopback, and waits until `/readyz` answers 200.
    ///
    /// - Parameters:
    ///   - flags: Flags beside `--listen`, `--admin-listen`, and `--allow-private-origin`.
    ///   - environment: Further variables of its environment.
    ///   - allowsLoopback: Whether origins on 127.0.0.0/8 may be fetched.
    ///   - certificates: What it speaks TLS with on ``securePort``, the first by default; none for
    ///     clear text alone.
    ///   - isPrivileged: False to take every capability from it, as containers and services do.
    ///   - space: Where it runs; its own doors are on that one's loopback.
    ///   - waits: False to return at once, before ``waitUntilReady()``.
    /// - Throws: `NotReady` with what it said if it does not come up.
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
            // Work for a loop that has ended ends the node, too.
            environment: environment.merging(["SWIFTNIO_STRICT": "1"]) { own, _ in own })
        if waits { try waitUntilReady() }
    }

    /// A node without further flags that the tests of this process share.
    ///
    /// Each test has to ask it for URLs of its own, and nothing of the node as a whole.
    package static func shared() throws -> NodeProcess {
        if let node = sharedNode.value, node.isRunning { return node }
        let node = try NodeProcess()
        sharedNode.value = node
        ExitHandlers.atExit { sharedNode.value = nil }
        return node
    }

    private static let sharedNode = LockedBox<NodeProcess?>(nil)

    /// Waits until `/readyz` answers 200, to operators or, where they need more, to clients: no
    /// connection of a client is left behind that a test would have to count.
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

    /// Starts the nodes of a cluster at once: none of them opens one before all have answered that
    /// it was told of.
    ///
    /// - Returns: The nodes, each of which answers 200.
    package static func cluster(
        of count: Int, _ start: (_ index: Int, _ waits: Bool) throws -> NodeProcess
    ) throws -> [NodeProcess] {
        let nodes = try (0..<count).map { try start($0, false) }
        do {
            for node in nodes { try node.waitUntilReady() }
        } catch {
            // It may be another that is missing.
            let said = nodes.map { "runs: \($0.isRunning)\n\($0.output)" }
            throw NotReady(description: said.joined(separator: "\n"))
        }
        return nodes
    }

    /// Where it listens, and with which certificates.
    private static func listenerFlags(
        _ port: Int, _ securePort: Int, _ certificates: [TestAuthority.Leaf]
    ) -> [String] {
        guard !certificates.isEmpty else { return ["--listen", "127.0.0.1:\(port)"] }
        let listen = ["--listen", "127.0.0.1:\(securePort)", "--plain-listen", "127.0.0.1:\(port)"]
        return listen
            + certificates.flatMap { ["--tls-certificate", $0.certificate, "--tls-key", $0.key] }
    }

    /// The binary beside the running test bundle, or the one `OUTSIDE_TESTS_NODE` names.
    package static func binary() throws -> String {
        if let named = ProcessInfo.processInfo.environment["OUTSIDE_TESTS_NODE"] { return named }
        return try built("nuthatch")
    }

    /// The program of that name beside the running test bundle.
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

    /// What it has written to standard output and standard error so far.
    package var output: String { String(decoding: program.output, as: UTF8.self) + program.errors }

    /// What it has written to standard output so far.
    package var standardOutput: String { String(decoding: program.output, as: UTF8.self) }

    /// The lines that it has written to standard error so far.
    package var lines: [String] {
        program.errors.split(separator: "\n").map(String.init)
    }

    /// How many lines of standard error hold all of `words`.
    package func lineCount(containing words: String...) -> Int {
        lines.count { line in words.allSatisfy(line.contains) }
    }

    /// Whether it still runs.
    package var isRunning: Bool { program.isRunning }

    /// Its process id.
    package var identifier: Int32 { program.identifier }

    /// Asks it to stop (SIGTERM).
    package func terminate() { program.terminate() }

    /// Asks it to stop as from a terminal (SIGINT).
    package func interrupt() { program.signal(SIGINT) }

    /// Has it read its settings again (SIGHUP).
    package func hangUp() { program.hangUp() }

    /// Has it stand still (SIGSTOP).
    package func pause() { program.signal(SIGSTOP) }

    /// Has it go on (SIGCONT).
    package func resume() { program.signal(SIGCONT) }

    /// Ends it at once (SIGKILL) and waits for that.
    package func kill() { program.kill() }

    /// Waits for its end and gives the exit status; nil if it still runs when the time is up.
    package func waitForExit(seconds: Double = 60) -> Int? { program.wait(seconds: seconds) }

    /// Asks it to stop, and waits for its end in the same way.
    package func stop(seconds: Double = 60) -> Int? {
        terminate()
        return waitForExit(seconds: seconds)
    }

    /// A new connection to its data door.
    package func connect(receiveBufferBytes: CInt? = nil) throws -> HTTPConnection {
        try HTTPConnection(port: port, receiveBufferBytes: receiveBufferBytes, in: namespace)
    }

    /// A new connection to its admin door.
    package func connectAdmin() throws -> HTTPConnection {
        try HTTPConnection(port: adminPort, in: namespace)
    }

    /// One request over a connection of its own.
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
    /// What the kernel counts of it; nil once it is gone.
    private var statistics: ProcessStatistics? { try? ProcessStatistics(of: identifier) }

    /// Resident bytes now.
    package var residentBytes: Int { statistics?.residentBytes ?? 0 }

    /// The most bytes that were ever resident, as the kernel counted.
    package var residentBytesMax: Int { statistics?.residentBytesMax ?? 0 }

    /// Open descriptors.
    package var descriptorCount: Int { statistics?.descriptors ?? 0 }

    /// How many entries it has on disk; -1 if it does not say.
    package var diskEntries: Double { metric("nuthatch_disk_entries") ?? -1 }

    /// How many entries it has still to hand over; nil if it does not say.
    package var offersPending: Double? {
        guard let waiting = metric("nuthatch_offers_pending{state=\"waiting\"}"),
            let open = metric("nuthatch_offers_pending{state=\"open\"}")
        else { return nil }
        return waiting + open
    }

    /// The value of a metric without labels, or of the series with these, as `/metrics` gives it.
    package func metric(_ series: String) -> Double? {
        guard let page = try? connectAdmin().get("/metrics").text else {
            return nil
        }
        let line = page.split(separator: "\n").first { $0.hasPrefix(series + " ") }
        return line.flatMap { Double($0.dropFirst(series.count + 1)) }
    }

    /// A document of its admin port, as JSON.
    ///
    /// - Throws: `NotDocument` if the answer is not 200 or no JSON object.
    package func document(_ path: String) throws -> [String: Any] {
        let response = try connectAdmin().get(path)
        guard response.status == 200, let document = response.document else {
            throw NotDocument(path: path, response: response)
        }
        return document
    }

    /// An answer that is no document.
    package struct NotDocument: Error {
        let path: String
        let response: Response
    }
}

extension NodeProcess {
    /// It says that it may lack a purge.
    package var isFenced: Bool { metric("nuthatch_fenced") != 0 }

    /// It is counted, and proven to know every purge.
    package var isReadyUnfenced: Bool {
        (try? connectAdmin().get("/readyz?unfenced"))?.status == 200
    }

    /// It is proven to know every purge, and at least so many members count.
    package func isCurrent(among count: Int) -> Bool {
        !isFenced && (metric("nuthatch_members_counted") ?? 0) >= Double(count)
    }
}
