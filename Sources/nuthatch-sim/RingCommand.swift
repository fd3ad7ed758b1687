import ArgumentParser
import Cluster
import Ground

/// `nuthatch-sim ring`: measures how evenly the ring distributes slots, and how many a change
/// moves.
struct RingCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ring",
        abstract: "Prints balance and movement of the ring, and the time to compute it.")

    @Option(help: "Numbers of nodes, separated by commas.")
    var nodes: String = "3,5,10,20,50,100,256,1000"

    @Option(help: "Seed of the nodes' ids.")
    var seed: UInt64 = 1

    func validate() throws {
        _ = try counts()
    }

    func run() throws {
        print(
            """
            slots: \(RingSlot.count); ids from seed \(seed); all weights equal
            peak, least: slots of the node with most and with fewest, over the mean
            joined, left: slots moved by one node, over the mean
            """)
        print(line(["nodes", "peak", "least", "joined", "left", "ms anew", "ms one more"]))
        for count in try counts() { print(row(count)) }
    }

    private func row(_ count: Int) -> String {
        var dice = SplitMix64(seed: seed)
        let members = RingStatistics.members(count + 1, using: &dice)
        let newcomer = members[count]
        let (ring, anew) = timed { Ring(members: Array(members.dropLast())) }
        let (joined, added) = timed { ring.adding(newcomer) }
        let left = ring.removing(members[0].id)
        let figures = RingStatistics(of: ring, afterJoin: joined, afterLeave: left)
        return line([
            String(figures.nodes), fixed(figures.peakToMean, decimals: 3),
            fixed(figures.minToMean, decimals: 3),
            fixed(figures.movedOnJoinToMean, decimals: 3),
            fixed(figures.movedOnLeaveToMean, decimals: 3), fixed(anew, decimals: 3),
            fixed(added, decimals: 3),
        ])
    }

    private func counts() throws -> [Int] {
        try numbers(nodes, of: "--nodes", in: 1...Ring.computableMax - 1)
    }

    /// Returns the result and the time in milliseconds.
    private func timed(_ compute: () -> Ring) -> (Ring, Double) {
        let clock = ContinuousClock()
        let start = clock.now
        let ring = compute()
        return (ring, start.duration(to: clock.now) / .milliseconds(1))
    }

    private func line(_ cells: [String]) -> String {
        cells.map { $0.padded(to: 12, isRight: true) }.joined()
    }
}
