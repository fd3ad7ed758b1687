import Cluster
import Ground
import Testing
import Trials

@Suite("Touches")
struct TouchTests {
    private func digest(_ number: UInt64) -> EntryDigest {
        EntryDigest(first: number, second: number &* 0x9E37_79B9_7F4A_7C15)
    }

    @Test("Uses of one entry make one touch with their number and the latest time")
    func merged() {
        var table = TouchTable(keysMax: 4)
        for second in [5, 9, 7] as [UInt32] { #expect(table.touch(digest(1), at: second) == true) }
        #expect(table.touch(digest(2), at: 6) == true)
        #expect(
            table.take() == [
                Touch(digest: digest(1), count: 3, lastAccess: 9),
                Touch(digest: digest(2), count: 1, lastAccess: 6),
            ])
        #expect(table.take().isEmpty)
        #expect(table.count == 0)
    }

    @Test("A full table still merges touches of known entries and refuses others")
    func full() {
        var table = TouchTable(keysMax: 3)
        for number in 1...3 as ClosedRange<UInt64> {
            #expect(!table.isFull)
            #expect(table.touch(digest(number), at: 1) == true)
        }
        #expect(table.isFull)
        #expect(table.touch(digest(4), at: 1) == false)
        #expect(table.touch(digest(2), at: 8) == true)
        #expect(table.take().map(\.count) == [1, 2, 1])
        #expect(table.touch(digest(4), at: 1) == true)
    }

    @Test("Entries with colliding digests are kept apart")
    func colliding() {
        var table = TouchTable(keysMax: 64)
        let digests = (0..<64).map { EntryDigest(first: $0, second: 3) }
        for digest in digests + digests { #expect(table.touch(digest, at: 1) == true) }
        #expect(table.take().map(\.digest) == digests)
    }

    @Test("No use is lost between event loops and batches, in any order")
    func conserved() {
        var dice = SplitMix64(seed: 7)
        var loops = (0..<4).map { _ in TouchTable(keysMax: 50) }
        var queue = TouchQueue(keysMax: 100_000)
        var uses: [EntryDigest: UInt32] = [:]
        var handedOn: [EntryDigest: UInt32] = [:]
        let handOn = { (batch: [Touch]) in
            for touch in batch { handedOn[touch.digest, default: 0] += touch.count }
        }
        for _ in 0..<Trials.count(100_000) {
            let loop = Int.random(in: 0..<4, using: &dice)
            let digest = digest(UInt64.random(in: 0..<5_000, using: &dice))
            uses[digest, default: 0] += 1
            if !loops[loop].touch(digest, at: 1) {
                queue.add(loops[loop].take())
                #expect(loops[loop].touch(digest, at: 1) == true)
            }
            if queue.hasBatch { handOn(queue.takeBatch()) }
        }
        for index in loops.indices { queue.add(loops[index].take()) }
        while queue.count > 0 { handOn(queue.takeBatch()) }
        #expect(handedOn == uses)
        #expect(queue.droppedCount == 0 && queue.mergedCount > 0)
    }

    @Test("At the limit the oldest touches are dropped and counted")
    func bounded() {
        var queue = TouchQueue(keysMax: 100)
        let touches = (0..<250).map { Touch(digest: digest($0), count: 1, lastAccess: 1) }
        queue.add(touches)
        #expect(queue.count == 100 && queue.droppedCount == 150)
        #expect(queue.takeBatch() == Array(touches.suffix(100)))
        #expect(queue.takeBatch().isEmpty)
        queue.add(Array(touches.prefix(1)))
        #expect(queue.takeBatch() == Array(touches.prefix(1)))
    }

    @Test("A batch has the oldest touches, at most 1,024")
    func batches() {
        var queue = TouchQueue(keysMax: 10_000)
        let touches = (0..<2_500).map { Touch(digest: digest($0), count: 2, lastAccess: 1) }
        queue.add(touches)
        #expect(queue.hasBatch)
        #expect(queue.takeBatch() == Array(touches.prefix(1_024)))
        queue.add([touches[1_500]])
        #expect(queue.takeBatch().first == touches[1_024])
        #expect(queue.takeBatch().count == 452 && !queue.hasBatch && queue.mergedCount == 1)
        #expect(queue.count == 0)
    }

    @Test("A count saturates")
    func saturates() {
        var touch = Touch(digest: digest(1), count: .max - 1, lastAccess: 3)
        touch.merge(Touch(digest: digest(1), count: 5, lastAccess: 2))
        #expect(touch.count == .max && touch.lastAccess == 3)
    }
}
