import Cluster
import Ground
import Testing

@Suite("A node that starts serves when it has found its cluster")
struct JoinWatchTests {
    @Test("without seeds there is nobody to look for")
    func alone() {
        #expect(JoinStage(seeds: 0).isOver)
    }

    @Test("where nobody answers it serves once every address was tried")
    func nobody() {
        var stage = JoinStage(seeds: 2)
        stage.resolve()
        #expect(!stage.isOver)
        stage.happens(.dialFailed(JoinStage.address(1)))
        #expect(!stage.isOver)
        stage.happens(.dialFailed(JoinStage.address(2)))
        #expect(stage.isOver)
    }

    @Test("its own address among the seeds' is one that was tried")
    func itself() {
        var stage = JoinStage(seeds: 1)
        stage.watch.lookedUp([JoinStage.address(100)], isWhole: true)
        let own = stage.members.node.own
        stage.happens(
            .connectionOpened(
                ConnectionID(9), dialled: own.member.address, own.member, own.incarnation))
        #expect(stage.isOver)
    }

    @Test("it waits for the table of whom it meets, and for those in it: met or not reached")
    func table() {
        var stage = JoinStage(seeds: 1)
        stage.resolve()
        let line = stage.connect(1, isOwnDial: true)
        #expect(!stage.isOver)
        let others: [MemberRecord] = [
            MemberStage.record(1), MemberStage.record(2), MemberStage.record(3),
            MemberStage.record(4, .dead), MemberStage.record(5, .left),
        ]
        stage.happens(.received(.table(others, isQuestion: false), on: line))
        #expect(!stage.isOver)
        stage.connect(2)
        #expect(!stage.isOver)
        stage.happens(.dialFailed(JoinStage.address(3)))
        #expect(stage.isOver)
    }

    @Test("a seed that has dialled itself need not be dialled")
    func met() {
        var stage = JoinStage(seeds: 1)
        stage.resolve()
        let line = stage.connect(1)
        stage.happens(.received(.table([MemberStage.record(1)], isQuestion: true), on: line))
        #expect(stage.isOver)
    }

    @Test("a look-up that fails does not say that nobody is there; the time's end does")
    func names() {
        var stage = JoinStage(seeds: 1)
        stage.watch.lookedUp([], isWhole: false)
        stage.pass(.milliseconds(4_999))
        #expect(!stage.isOver)
        stage.pass(.milliseconds(1))
        #expect(stage.isOver)

        var other = JoinStage(seeds: 2)
        other.watch.lookedUp([JoinStage.address(1)], isWhole: false)
        other.happens(.dialFailed(JoinStage.address(1)))
        #expect(!other.isOver)
        other.watch.lookedUp([JoinStage.address(1)], isWhole: true)
        #expect(other.isOver)
        // What was found out once holds.
        other.watch.lookedUp([], isWhole: false)
        #expect(other.isOver)
    }

    @Test("while another process with its id is there it waits")
    func twin() {
        var stage = JoinStage(seeds: 1)
        stage.resolve()
        let own = stage.members.node.own
        let other = MemberStage.member(100, run: 1)
        stage.happens(
            .connectionOpened(
                ConnectionID(9), dialled: JoinStage.address(1), other, own.incarnation))
        #expect(stage.members.node.isContested && !stage.isOver)
        stage.pass(.seconds(5))
        #expect(!stage.members.node.isContested && stage.isOver)
    }
}

/// A node that looks for its cluster.
private struct JoinStage {
    var members = MemberStage()
    var watch: JoinWatch
    let seeds: [PeerAddress]

    init(seeds count: UInt64) {
        seeds = (0..<count).map { Self.address($0 + 1) }
        watch = JoinWatch(hasSeeds: count > 0, now: MemberStage.start)
    }

    static func address(_ number: UInt64) -> PeerAddress { MemberStage.member(number).address }

    var isOver: Bool { watch.isOver(members.node, now: members.now) }

    mutating func resolve() {
        watch.lookedUp(seeds, isWhole: true)
        happens(.seedsResolved(seeds))
    }

    mutating func happens(_ event: MembershipEvent) {
        watch.follow(event)
        members.happens(event)
    }

    @discardableResult
    mutating func connect(_ number: UInt64, isOwnDial: Bool = false) -> ConnectionID {
        let line = members.connect(number, isOwnDial: isOwnDial)
        let member = MemberStage.member(number)
        watch.follow(
            .connectionOpened(
                line, dialled: isOwnDial ? member.address : nil, member,
                Incarnation(epoch: 5, count: 0)))
        return line
    }

    mutating func pass(_ interval: Interval) {
        members.run(for: interval) { message, _ in MemberStage.ack(message) }
    }
}
