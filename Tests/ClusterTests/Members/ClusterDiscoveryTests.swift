import Cluster
import Ground
import Testing

@Suite("A starting node looks for its cluster before it serves")
struct ClusterDiscoveryTests {
    @Test("Without seeds there is nothing to look for")
    func alone() {
        let stage = JoinStage(seeds: 0)
        #expect(stage.isOver && stage.rule == .unanimous)
    }

    @Test("If no seed answers, the node serves after the timeout and never bootstraps")
    func nobody() {
        var stage = JoinStage(seeds: 2)
        stage.resolve()
        stage.happens(.dialFailed(JoinStage.address(1)))
        stage.happens(.dialFailed(JoinStage.address(2)))
        stage.pass(.milliseconds(29_999))
        #expect(!stage.isOver)
        stage.pass(.milliseconds(1))
        #expect(stage.isOver && stage.rule == .never)
        // A node that has a voter set needs no answer to serve.
        var counted = JoinStage(seeds: 1, isCounting: true)
        counted.resolve()
        #expect(!counted.isOver)
        counted.happens(.dialFailed(JoinStage.address(1)))
        #expect(counted.isOver)
    }

    @Test("Bootstrap is allowed while every address answers, and not when one is lost")
    func everybody() {
        var stage = JoinStage(seeds: 2)
        stage.resolve()
        #expect(stage.rule == .never)
        stage.connect(1, isOwnDial: true)
        #expect(stage.rule == .never)
        let line = stage.connect(2)
        #expect(stage.rule == .unanimous)
        stage.happens(.connectionClosed(line, nil))
        #expect(stage.rule == .never)
    }

    @Test("With an expected size, silent seeds do not matter")
    func expected() {
        var stage = JoinStage(seeds: 2, expects: 3)
        #expect(stage.rule == .majority(of: 3))
        stage.resolve()
        stage.happens(.dialFailed(JoinStage.address(1)))
        #expect(stage.rule == .majority(of: 3) && !stage.isOver)
    }

    @Test("The node's own address among the seeds counts as one that answers")
    func itself() {
        var stage = JoinStage(seeds: 1, isCounting: true)
        stage.watch.seedsResolved([JoinStage.address(200)], isComplete: true)
        #expect(stage.rule == .never)
        let own = stage.members.node.own
        stage.happens(
            .connectionOpened(
                ConnectionID(9), dialled: JoinStage.address(200), own.member, own.incarnation))
        #expect(stage.isOver && stage.rule == .unanimous)
    }

    @Test("What is missing is reported with the reason")
    func missing() {
        var stage = JoinStage(seeds: 2)
        let name = PeerAddress(host: "b.example", port: 8082)
        stage.watch.addressFailed(name, reason: "no address")
        #expect(
            stage.watch.missingSeeds(DiscoveryView(stage.members.node)) == [
                "b.example:8082: no address"
            ])
        stage.resolve()
        stage.watch.addressFailed(JoinStage.address(1), reason: "refused")
        let missing = stage.watch.missingSeeds(DiscoveryView(stage.members.node))
        let addresses = [1, 2].map { JoinStage.address($0) }
        #expect(missing == ["\(addresses[0]): refused", "\(addresses[1]): no response"])
        stage.connect(1, isOwnDial: true)
        #expect(
            stage.watch.missingSeeds(DiscoveryView(stage.members.node)) == [
                "\(addresses[1]): no response"
            ])
    }

    @Test("A node waits for the table of each member it meets, and for those in it")
    func table() {
        var stage = JoinStage(seeds: 1, isCounting: true)
        stage.resolve()
        let line = stage.connect(1, isOwnDial: true)
        #expect(!stage.isOver)
        let others: [MemberRecord] = [
            MemberStage.record(1), MemberStage.record(2), MemberStage.record(3),
            MemberStage.record(4, .dead), MemberStage.record(5, .left),
        ]
        stage.happens(.messageReceived(.table(others, isRequest: false), on: line))
        #expect(!stage.isOver)
        stage.connect(2)
        #expect(!stage.isOver)
        stage.happens(.dialFailed(JoinStage.address(3)))
        #expect(stage.isOver)
    }

    @Test("A seed that has dialled this node need not be dialled")
    func met() {
        var stage = JoinStage(seeds: 1, isCounting: true)
        stage.resolve()
        let line = stage.connect(1)
        stage.happens(.messageReceived(.table([MemberStage.record(1)], isRequest: true), on: line))
        #expect(stage.isOver)
    }

    @Test("A failing name look-up is not an empty result; the timeout ends the wait")
    func names() {
        var stage = JoinStage(seeds: 1, isCounting: true)
        stage.watch.seedsResolved([], isComplete: false)
        stage.pass(.milliseconds(4_999))
        #expect(!stage.isOver)
        stage.pass(.milliseconds(1))
        #expect(stage.isOver && stage.rule == .never)

        var other = JoinStage(seeds: 2, isCounting: true)
        other.watch.seedsResolved([JoinStage.address(1)], isComplete: false)
        other.happens(.dialFailed(JoinStage.address(1)))
        #expect(!other.isOver)
        other.watch.seedsResolved([JoinStage.address(1)], isComplete: true)
        #expect(other.isOver)
        // A completed look-up stays complete.
        other.watch.seedsResolved([], isComplete: false)
        #expect(other.isOver)
    }

    @Test("While another process with its id answers, the node waits")
    func twin() {
        var stage = JoinStage(seeds: 1, isCounting: true)
        stage.resolve()
        let own = stage.members.node.own
        let other = MemberStage.member(100, run: 1)
        stage.happens(
            .connectionOpened(
                ConnectionID(9), dialled: JoinStage.address(1), other, own.incarnation))
        #expect(stage.members.node.hasDuplicate && !stage.isOver && stage.rule == .never)
        stage.pass(.seconds(5))
        #expect(!stage.members.node.hasDuplicate && stage.isOver)
    }
}

/// A node that looks for its cluster.
private struct JoinStage {
    var members = MemberStage()
    var watch: ClusterDiscovery
    let seeds: [PeerAddress]
    let isCounting: Bool

    init(seeds count: UInt64, isCounting: Bool = false, expects: Int? = nil) {
        seeds = (0..<count).map { Self.address($0 + 1) }
        self.isCounting = isCounting
        watch = ClusterDiscovery(
            .init(hasSeeds: count > 0, expects: expects), now: MemberStage.start)
    }

    static func address(_ number: UInt64) -> PeerAddress { MemberStage.member(number).address }

    var isOver: Bool {
        watch.isComplete(DiscoveryView(members.node), hasVoterSet: isCounting, now: members.now)
    }
    var rule: ClusterFormation.Rule { watch.formationRule(DiscoveryView(members.node)) }

    mutating func resolve() {
        watch.seedsResolved(seeds, isComplete: true)
        happens(.seedsResolved(seeds))
    }

    mutating func happens(_ event: MembershipEvent) {
        watch.observe(event)
        members.happens(event)
    }

    @discardableResult
    mutating func connect(_ number: UInt64, isOwnDial: Bool = false) -> ConnectionID {
        let line = members.connect(number, isOwnDial: isOwnDial)
        let member = MemberStage.member(number)
        watch.observe(
            .connectionOpened(
                line, dialled: isOwnDial ? member.address : nil, member,
                Incarnation(epoch: 5, count: 0)))
        return line
    }

    mutating func pass(_ interval: Interval) {
        members.answered(for: interval)
    }
}
