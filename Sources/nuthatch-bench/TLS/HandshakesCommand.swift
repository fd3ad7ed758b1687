import ArgumentParser
import Ground
import Harness
import NIOCore
import NIOPosix
import Wire

/// Measures the TLS handshakes that servers perform per second of processor time.
struct HandshakesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "handshakes",
        abstract: "Compares servers by TLS handshakes per second of their processor time.",
        discussion: """
            Each server is NAME=PORT,PID[,PID…], on this machine. They take turns, round by round, \
            first with full handshakes, then with resumed ones; the negotiated parameters are \
            printed. The other servers are compared with the first one.
            """)

    @Option(help: "Certificate of the servers (PEM); must be for localhost.")
    var certificate: String

    @Option(help: "Handshakes with each server in each round.")
    var handshakes = 2000

    @Option(help: "Rounds.")
    var rounds = 5

    @Argument(help: "NAME=PORT,PID[,PID…]")
    var servers: [String]

    /// A server to measure.
    private struct Server {
        let name: String
        let port: Int
        let identifiers: [Int32]
        var full: [Double] = []
        var resumed: [Double] = []

        init(_ text: String) throws {
            let parts = text.split(separator: "=", maxSplits: 1)
            let numbers = parts.last?.split(separator: ",").compactMap { Int($0) } ?? []
            guard parts.count == 2, numbers.count > 1 else {
                throw ValidationError("\(text) is not NAME=PORT,PID[,PID…]")
            }
            name = String(parts[0])
            port = numbers[0]
            identifiers = numbers.dropFirst().map(Int32.init)
        }

        func processorSeconds() throws -> Double {
            try identifiers.reduce(0) { try $0 + ProcessStatistics(of: $1).processorSeconds }
        }
    }

    func run() async throws {
        var servers = try servers.map(Server.init)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let tls = try TLSClient.context(trusting: certificate, [.http11])
        for round in 0...rounds {
            for index in servers.indices {
                let full = try await measure(servers[index], tls, TicketStore(), loop)
                let resumed = try await measure(servers[index], tls, full.tickets, loop)
                guard round > 0 else {
                    let agreed = full.agreed
                    print(
                        "\(servers[index].name): \(agreed.version), \(agreed.cipherSuite), "
                            + "\(agreed.group ?? "-"); resumed \(resumed.resumed) of \(handshakes)")
                    continue
                }
                servers[index].full.append(full.perSecond)
                servers[index].resumed.append(resumed.perSecond)
            }
        }
        report(servers)
        try await group.shutdownGracefully()
    }

    /// The tickets of earlier connections, each for one use; confined to the loop.
    private final class TicketStore: @unchecked Sendable {
        var all: [TLSResumption] = []
    }

    /// The result of a round against a server.
    private struct ServerRound {
        /// The handshakes per second of processor time.
        let perSecond: Double
        let resumed: Int
        let agreed: TLSParameters
        /// A ticket of each connection.
        let tickets: TicketStore
    }

    /// Performs the handshakes, each with one of `tickets` while there are any.
    private func measure(
        _ server: Server, _ tls: TLSClientContext, _ tickets: TicketStore, _ loop: any EventLoop
    ) async throws -> ServerRound {
        let before = try server.processorSeconds()
        let given = TicketStore()
        var agreed: TLSParameters?
        var resumed = 0
        var left = handshakes
        while left > 0 {
            let batch = min(16, left)
            left -= batch
            let futures = (0..<batch).map { _ in
                loop.flatSubmit {
                    TLSClient.connect(
                        to: server.port, tls, resuming: tickets.all.popLast(), on: loop)
                }
            }
            let made = try await EventLoopFuture.whenAllSucceed(futures, on: loop).get()
            for (client, parameters) in made {
                agreed = parameters
                if parameters.isResumed { resumed += 1 }
                // It arrives after the handshake.
                try await loop.flatSubmit { client.value.waitForTicket(on: loop) }.get()
                try await loop.submit {
                    if let ticket = client.value.takeTicket() { given.all.append(ticket) }
                    client.value.close()
                }.get()
            }
        }
        guard let agreed else { throw ValidationError("no handshake was made") }
        let spent = try server.processorSeconds() - before
        return ServerRound(
            perSecond: Double(handshakes) / spent, resumed: resumed, agreed: agreed,
            tickets: given)
    }

    private func report(_ servers: [Server]) {
        guard let base = servers.first else { return }
        for server in servers {
            let (full, resumed) = (server.full.median, server.resumed.median)
            let fullRatio = full / base.full.median
            let resumedRatio = resumed / base.resumed.median
            print(
                "\(server.name): \(Int(full)) full/s x\(hundredths(fullRatio)), "
                    + "\(Int(resumed)) resumed/s x\(hundredths(resumedRatio)) of \(base.name)")
        }
    }
}
