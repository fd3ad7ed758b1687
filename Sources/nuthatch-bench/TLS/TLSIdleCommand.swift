import ArgumentParser
import Harness
import NIOCore
import NIOPosix
import Wire

/// Measures the costs of idle TLS connections for a node.
struct TLSIdleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tls-idle",
        abstract: "Prints a node's memory for each idle TLS connection, and what remains.",
        discussion: """
            Starts a node as another process, opens the connections to it, each with a full \
            handshake, and leaves them idle. Memory is what the kernel counts as the node's own \
            (RssAnon), without socket buffers. Then all connections are closed, and memory is \
            measured again after the node has had ten seconds to release it.
            """)

    @Option(help: "Concurrent TLS connections; the descriptor limit must allow twice as many.")
    var connections = 10_000

    @Flag(help: "The client asks for HTTP/2.")
    var http2 = false

    @Argument(help: "Further flags of nuthatch serve, after --.")
    var flags: [String] = []

    func run() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let authority = try TestAuthority()
        let node = try NodeProcess(
            ["--memory-pressure", "off", "--log-level", "warning"] + flags,
            certificates: [authority.leaf("node", hosts: ["localhost"])])
        let tls = try TLSClient.context(trusting: authority.file, http2 ? [.http2] : [.http11])
        let port = node.securePort
        let loop = group.next()
        try await warmUp(port, tls, loop)
        let before = try ProcessStatistics(of: node.identifier)
        print("before: \(before.anonymousBytes >> 10) KiB, \(before.descriptors) descriptors")
        for _ in 1...3 {
            let clients = try await open(port, tls, loop)
            let open = try ProcessStatistics(of: node.identifier)
            let each = (open.anonymousBytes - before.anonymousBytes) / connections
            print(
                "\(connections) open: \(open.anonymousBytes >> 10) KiB, \(each) bytes each, "
                    + "\(open.descriptors - before.descriptors) descriptors more")
            try await close(clients, loop)
            let after = try await settled(node, loop)
            print(
                "closed: \(after.anonymousBytes >> 10) KiB, "
                    + "\(after.descriptors - before.descriptors) descriptors more")
        }
        try await group.shutdownGracefully()
    }

    /// Opens connections that trigger all one-time allocations.
    private func warmUp(_ port: Int, _ tls: TLSClientContext, _ loop: any EventLoop) async throws {
        for _ in 0..<50 {
            let (client, _) = try await connect(port, tls, loop).get()
            try await loop.submit { client.value.close() }.get()
        }
    }

    private func open(
        _ port: Int, _ tls: TLSClientContext, _ loop: any EventLoop
    ) async throws -> [NIOLoopBound<TLSClient>] {
        var clients: [NIOLoopBound<TLSClient>] = []
        while clients.count < connections {
            let batch = min(64, connections - clients.count)
            let futures = (0..<batch).map { _ in connect(port, tls, loop) }
            for (client, _) in try await EventLoopFuture.whenAllSucceed(futures, on: loop).get() {
                clients.append(client)
            }
        }
        return clients
    }

    private func connect(
        _ port: Int, _ tls: TLSClientContext, _ loop: any EventLoop
    ) -> EventLoopFuture<(NIOLoopBound<TLSClient>, TLSParameters)> {
        loop.flatSubmit { TLSClient.connect(to: port, tls, on: loop) }
    }

    private func close(
        _ clients: [NIOLoopBound<TLSClient>], _ loop: any EventLoop
    ) async throws {
        try await loop.submit { for client in clients { client.value.close() } }.get()
    }

    /// Returns the node's figures once it had time to release memory and its descriptors no longer
    /// decrease.
    private func settled(_ node: NodeProcess, _ loop: any EventLoop) async throws
        -> ProcessStatistics
    {
        for _ in 0..<400 { try await Self.pause(loop) }
        var last = try ProcessStatistics(of: node.identifier)
        var same = 0
        while same < 20 {
            try await Self.pause(loop)
            let next = try ProcessStatistics(of: node.identifier)
            same = next.descriptors == last.descriptors ? same + 1 : 0
            last = next
        }
        return last
    }

    private static func pause(_ loop: any EventLoop) async throws {
        try await loop.scheduleTask(in: .milliseconds(25)) {}.futureResult.get()
    }
}
