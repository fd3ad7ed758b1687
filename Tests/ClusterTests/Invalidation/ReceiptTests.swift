import Cluster
import Ground
import Testing

@Suite("Receipts")
struct ReceiptTests {
    private func id(_ number: UInt64) -> NodeID { LogStage.id(number) }

    @Test("A member is pending, then confirmed; a receipt is settled when none is pending")
    func story() throws {
        var stage = LogStage(members: 1...3)
        _ = stage.issue(LogStage.purge("a"))
        let fresh = try #require(stage.receipt)
        #expect(fresh.confirmations.map(\.status) == Array(repeating: .pending, count: 4))
        #expect(fresh.majorityAt == nil && !fresh.isSettled && !fresh.isConfirmedByAll)
        stage.now = stage.now + .milliseconds(2)
        stage.synced()
        #expect(stage.status(100) == .confirmed(elapsed: .milliseconds(2)))
        let own = LogStage.position(100, 1)
        for number in [1, 2] as [UInt64] {
            stage.now = stage.now + .milliseconds(3)
            #expect(stage.confirm([own], members: [1, 2, 3, 100], by: number).isEmpty)
        }
        let bounded = try #require(stage.receipt)
        #expect(bounded.majorityAt == LogStage.start + .milliseconds(8))
        #expect(bounded.boundedAt == LogStage.start + .milliseconds(8) + .seconds(10))
        #expect(stage.status(2) == .confirmed(elapsed: .milliseconds(8)))
        // The last one disconnects: none is pending, and not all have confirmed.
        #expect(stage.disconnect(3) == [.receiptsSettled(upTo: 1)])
        #expect(stage.status(3) == .unreachable(since: stage.now))
        let settled = try #require(stage.receipt)
        #expect(settled.isSettled && !settled.isConfirmedByAll)
        #expect(stage.log.pendingReceiptCount == 1)
        // It returns and confirms late.
        stage.now = stage.now + .seconds(60)
        stage.connect(3, on: 9)
        #expect(stage.status(3) == .pending)
        stage.confirm([own], members: [1, 2, 3, 100], by: 3)
        #expect(stage.receipt?.isConfirmedByAll == true)
        #expect(stage.log.pendingReceiptCount == 0)
    }

    @Test("Consensus records are no purges: none is listed or pending")
    func counts() throws {
        var stage = LogStage(members: 1...2)
        var dice = SplitMix64(seed: 7)
        stage.disconnect(2)
        for number in 1...600 {
            let isPurge = number.isMultiple(of: 50)
            let word = Invalidation(id: [], .consensus(.random(using: &dice)))
            _ = stage.issue(isPurge ? LogStage.purge("p\(number)") : word)
        }
        // The first is written at once, the others in one batch after it.
        for _ in 0..<2 { stage.synced() }
        let names = stage.log.lastPurges(5)
        #expect(names == [600, 550, 500, 450, 400].map { LogStage.name(100, $0) })
        #expect(stage.log.lastPurges(100).count == 12 && stage.log.lastPurges(0).isEmpty)
        #expect(stage.log.pendingReceiptCount == 12)
        stage.confirm([LogStage.position(100, 600)], members: [1, 2, 100], by: 1)
        #expect(stage.log.pendingReceiptCount == 12)
        // A node that is no member is not waited for.
        stage.confirm([LogStage.position(100, 549)], members: [1, 2, 3, 100], by: 2)
        #expect(stage.log.pendingReceiptCount == 2)
        stage.follow([1, 100], gone: [2])
        #expect(stage.log.pendingReceiptCount == 0)
    }

    @Test("Without a known voter set a receipt has no majority and is not confirmed by all")
    func alone() throws {
        var stage = LogStage()
        stage.log = InvalidationLog(
            node: id(100), process: LogStage.process(100), now: LogStage.start)
        _ = stage.issue(LogStage.purge("a"))
        stage.synced()
        let receipt = try #require(stage.receipt)
        #expect(!receipt.confirmations.contains { !$0.status.isConfirmed })
        #expect(receipt.majorityAt == nil && !receipt.isConfirmedByAll)
    }

    @Test("A majority that results from a removal counts from then on")
    func forgotten() throws {
        var stage = LogStage.issued(members: 1...4)
        stage.confirm([LogStage.position(100, 1)], members: [1, 100], by: 1)
        #expect(stage.receipt?.majorityAt == nil)
        stage.now = stage.now + .seconds(60)
        stage.follow([1, 2, 100], gone: [3, 4])
        #expect(stage.receipt?.majorityAt == stage.now)
        // It stays when voters are added.
        let before = stage.now
        stage.now = stage.now + .seconds(60)
        stage.follow([1, 2, 3, 4, 5, 100])
        #expect(stage.receipt?.majorityAt == before)
    }

    @Test("A record stays durable when members that confirmed it are removed")
    func vanished() {
        var stage = LogStage.issued(members: 1...4)
        for number in [1, 2] as [UInt64] {
            stage.confirm([LogStage.position(100, 1)], members: [1, 2, 3, 4, 100], by: number)
        }
        let before = stage.receipt?.majorityAt
        #expect(before == stage.now)
        stage.now = stage.now + .seconds(60)
        for number in [1, 2] as [UInt64] { stage.disconnect(number) }
        stage.follow([3, 4, 100])
        #expect(stage.receipt?.majorityAt == before)
    }

    @Test("A member named in a confirmation is in the receipt until it has confirmed")
    func joiner() {
        var stage = LogStage.issued(members: 1...2)
        let own = LogStage.position(100, 1)
        stage.confirm([own], members: [1, 2, 100], by: 1)
        // It caught up with the second member meanwhile.
        stage.connect(7)
        #expect(stage.confirm([own], members: [1, 2, 7, 100], by: 2).isEmpty)
        #expect(stage.status(7) == .pending)
        #expect(
            stage.confirm([own], members: [1, 2, 7, 100], by: 7) == [.receiptsSettled(upTo: 1)])
        #expect(stage.receipt?.isConfirmedByAll == true)
    }

    @Test(
        "A node that answers a catch-up or repair request records the requester as a member first")
    func recorded() {
        var stage = LogStage.issued(members: 1...1)
        _ = stage.log.catchUpTarget(of: id(7))
        #expect(stage.status(7) == .pending)
        _ = stage.log.repairResponse(to: [], of: id(8), bytesMax: 1)
        stage.receive([LogStage.record(1, 1)], from: 1)
        _ = stage.confirmations()
        stage.synced()
        #expect(stage.confirmations() == ["1.1 to 1"])
        #expect(stage.log.knownMembers == [id(1), id(7), id(8), id(100)])
        // By now they are known members, or were refused.
        stage.follow([1, 7, 100], gone: [8])
        stage.wait(.seconds(1))
        #expect(stage.confirmations() == ["1.1, 100.1 to 1"])
        #expect(stage.log.knownMembers == [id(1), id(7), id(100)])
    }

    @Test("A member that has left is in no receipt, whatever others report")
    func gone() {
        var stage = LogStage.issued(members: 1...2)
        stage.confirm([LogStage.position(100, 1)], members: [1, 2, 100], by: 1)
        stage.disconnect(2)
        stage.follow([1, 100], gone: [2])
        stage.confirm([LogStage.position(100, 1)], members: [1, 2, 100], by: 1)
        #expect(stage.status(2) == nil)
        #expect(stage.receipt?.isConfirmedByAll == true)
    }

    @Test("A majority is a majority of the voters")
    func majority() {
        var stage = LogStage.issued()
        #expect(stage.receipt?.majorityAt == LogStage.start)
        stage.follow([1, 100])
        #expect(stage.receipt?.majorityAt == nil)
        stage.now = stage.now + .seconds(1)
        stage.confirm([LogStage.position(100, 1)], members: [1, 100], by: 1)
        #expect(stage.receipt?.majorityAt == LogStage.start + .seconds(1))
        stage.follow([1, 2, 3, 100])
        #expect(stage.receipt?.majorityAt == nil)
    }

    @Test("Any node has receipts of the records that it holds, and of no others")
    func elsewhere() {
        var stage = LogStage(members: 1...2)
        stage.receive([LogStage.record(1, 1)], from: 1)
        stage.confirm([LogStage.position(1, 1)], members: [1, 2, 100], by: 1)
        let receipt = stage.log.receipt(of: LogStage.name(1, 1))
        #expect(
            receipt?.confirmations.map(\.status) == [
                .confirmed(elapsed: .zero), .pending, .pending,
            ])
        #expect(stage.log.receipt(of: LogStage.name(1, 2)) == nil)
    }

    @Test("Of many confirmations the oldest times are forgotten, but not the confirmations")
    func manySteps() {
        var stage = LogStage(members: 1...1)
        for number in 1...400 as ClosedRange<UInt64> {
            _ = stage.issue(LogStage.purge("\(number)"))
            stage.synced()
            stage.now = stage.now + .milliseconds(1)
            stage.confirm([LogStage.position(100, number)], members: [1, 100], by: 1)
        }
        for number in 1...400 as ClosedRange<UInt64> {
            #expect(stage.status(1, of: number)?.isConfirmed == true)
        }
        #expect(stage.status(1, of: 400) == .confirmed(elapsed: .milliseconds(1)))
    }
}
