import ArgumentParser
import Harness
import NIOCore
import NIOPosix

/// Measures whether normal clients notice attacks by others.
struct AttacksCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "attacks",
        abstract: "Times hits and other sites' misses on a node while clients attack it.",
        discussion: """
            Three kinds of slices alternate in one run: quiet ones; ones in which another node of \
            the same kind is attacked, which shows what the attack costs this machine; and ones in \
            which the node itself is. In each, some clients request an image in memory and \
            images that are not, of a site whose origin is not attacked, and a page of the site \
            that is. A time is counted from the instant at which its request was due; a ratio is \
            the median over the rounds. An attack has a slice in which it begins and one in \
            which it continues; then the node is given time to recover.
            """)

    @Option(help: "Only this attack.")
    var only: String?

    @Option(help: "Size of each attack, as a multiple of its original size.")
    var times = 10

    @Option(help: "Number of attacking addresses.")
    var clients = 1

    @Option(help: "Hits per second.")
    var hits = 1000

    @Option(help: "Misses per second, and pages of the attacked site per second.")
    var misses = 100

    @Option(help: "Seconds of each slice.")
    var seconds = 1.0

    @Option(help: "Slices of each kind.")
    var rounds = 5

    @Argument(help: "Further flags of nuthatch serve, after --.")
    var flags: [String] = []

    func validate() throws {
        guard times > 0, 1...10_000 ~= clients, hits > 0, misses > 0, seconds > 0, rounds > 0 else {
            throw ValidationError("every number is above 0")
        }
        guard let only, !Attack.all.contains(where: { $0.name == only }) else { return }
        let names = Attack.all.map(\.name).joined(separator: ", ")
        throw ValidationError("there is no attack \(only); there are \(names)")
    }

    func run() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        for attack in Attack.all where only == nil || attack.name == only {
            try await run(attack, on: group.next())
        }
        try await group.shutdownGracefully()
    }

    private func run(_ attack: Attack, on loop: any EventLoop) async throws {
        let stage = try AttackTestbed(attack.flags + flags)
        let other = try AttackTestbed(attack.flags + flags)
        let loads = try await AttackLoads(stage, on: loop, hits: hits, misses: misses)
        var slices = AttackLoads.Slices()
        let crowd = Attack.Attackers(clients: clients)
        for _ in 1...rounds {
            slices.quiet.append(try await loads.run(seconds) {}.0)
            for (target, kind) in [
                (other, \AttackLoads.Slices.control), (stage, \AttackLoads.Slices.attacked),
            ] {
                let (begins, held) = try await loads.run(seconds) {
                    try attack.begin(target, attack.size * times, crowd)
                }
                slices[keyPath: kind].begins.append(begins)
                slices[keyPath: kind].lasts.append(try await loads.run(seconds) {}.0)
                withExtendedLifetime(held) {}
            }
            try [stage, other].forEach { try $0.waitUntilIdle() }
        }
        print("\(attack.name), \(attack.size * times), by \(clients):")
        AttackLoads.report(slices)
        try await loads.close()
    }
}
