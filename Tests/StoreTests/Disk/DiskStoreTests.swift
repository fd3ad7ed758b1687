import Dispatch
import Ground
import NIOPosix
import Store
import Synchronization
import Testing
import Tiers
import Trials

@Suite("The threads of the disk tier", .disabled(if: Trials.isReduced))
struct DiskStoreTests {
    private let root = TemporaryDirectory()
    private let readers = NIOThreadPool.singleton

    private func tier(below path: String, marks: InvalidationIndex = InvalidationIndex())
        -> DiskStore
    {
        DiskStore(
            .init(
                root: path, limitBytes: 16 << 20, objectBytesMax: 1 << 20,
                ageLimit: .seconds(1_000), queueBytesMax: 1 << 20, checkpointInterval: .seconds(1)),
            marks: marks,
            clock: DiskClock(instant: .zero, wall: 1_800_000_000_000), readers: readers
        ) { _ in }
    }

    private let name: EntryName = {
        let bytes = [UInt8](repeating: 7, count: EntryName.bytesCount)
        return EntryName(bytes.span)
    }()

    @Test("When a start returns, the log is readable and new requests get a version")
    func started() async {
        for _ in 0..<100 {
            let tier = tier(below: root.path)
            await tier.start(now: .zero)
            #expect(tier.view != nil && tier.marks.version > .zero && tier.isAvailable)
            await tier.close()
            #expect(tier.view == nil && !tier.isAvailable)
        }
    }

    @Test("Touches are bounded while the writer waits for the disk")
    func touches() async throws {
        let tier = tier(below: root.path)
        await tier.start(now: .zero)
        let gate = DispatchSemaphore(value: 0)
        let entries = Entries(limitBytes: 1 << 20, marks: tier.marks)
        let entry = try #require(entries.put("one", bytes: 100, name: name))
        tier.enqueueHandoff(entry, idle: .zero, touches: 0, now: .zero) { _ in gate.wait() }
        let touch = (digest: name.digest, count: UInt32(1), second: UInt32(9))
        for _ in 0..<100 { tier.touch(Array(repeating: touch, count: 1_024)) }
        #expect(tier.counters[.touchesDropped] == 100 * 1_024 - DiskStore.touchesMax)
        gate.signal()
        await tier.close()
    }

    @Test("A pending write is found until it is written or forgotten")
    func waiting() async throws {
        let tier = tier(below: root.path, marks: InvalidationIndex(isJournaled: true))
        await tier.start(now: .zero)
        let entries = Entries(limitBytes: 1 << 20, marks: tier.marks)
        let kept = try #require(entries.put("kept", bytes: 100, name: name))
        tier.enqueueWrite(kept, now: .zero)
        #expect(tier.pendingWrite(name)?.entry === kept)
        tier.forget(name)
        #expect(tier.pendingWrite(name) == nil)
        let other = try #require(entries.put("kept", bytes: 200, name: name))
        tier.enqueueWrite(other, now: .zero)
        #expect(tier.pendingWrite(name)?.entry === other)
        tier.marks.journaled(upTo: tier.marks.version)
        await tier.close()
        #expect(tier.pendingWrite(name) == nil && tier.pendingBytes == 0)
    }

    @Test("A forgotten entry is not found, even while the writer waits for the disk")
    func forgotten() async throws {
        let tier = tier(below: root.path)
        await tier.start(now: .zero)
        let gate = DispatchSemaphore(value: 0)
        let entries = Entries(limitBytes: 1 << 20, marks: tier.marks)
        let entry = try #require(entries.put("one", bytes: 100, name: name))
        let isHeld = Atomic<Bool>(false)
        tier.enqueueHandoff(entry, idle: .zero, touches: 0, now: .zero) { _ in
            isHeld.store(true, ordering: .releasing)
            gate.wait()
        }
        while !isHeld.load(ordering: .acquiring) { await Task.yield() }
        let view = try #require(tier.view)
        #expect(view.contains(name.digest))
        tier.enqueueWrite(entry, now: .zero)
        tier.forget(name)
        #expect(!view.contains(name.digest) && tier.pendingWrite(name) == nil)
        gate.signal()
        await tier.close()
        #expect(tier.counters[.admittedRecords] == 1, "the pending write was not discarded")
    }

    @Test("An offered entry that is forgotten is not found, although its write is pending")
    func offeredAndForgotten() async throws {
        let tier = tier(below: root.path)
        await tier.start(now: .zero)
        let gate = DispatchSemaphore(value: 0)
        let entries = Entries(limitBytes: 1 << 20, marks: tier.marks)
        let other = EntryName([UInt8](repeating: 9, count: EntryName.bytesCount).span)
        let first = try #require(entries.put("one", bytes: 100, name: other))
        let offers = try (0..<3).map { try #require(entries.put("\($0)", bytes: 100, name: name)) }
        tier.enqueueHandoff(first, idle: .zero, touches: 0, now: .zero) { _ in gate.wait() }
        let isThere = Mutex<[Bool]>([])
        for (number, offer) in offers.enumerated() {
            if number == 2 { tier.forget(name) }
            tier.enqueueHandoff(offer, idle: .zero, touches: 0, now: .zero) { isFound in
                isThere.withLock { $0.append(isFound) }
            }
        }
        let view = try #require(tier.view)
        gate.signal()
        await tier.close()
        #expect(isThere.withLock(\.self) == [false, false, true])
        #expect(view.contains(name.digest) && view.contains(other.digest))
    }

    @Test("The mark for an entry taken from the queue is kept until its reader releases it")
    func leased() async throws {
        let tier = tier(below: root.path, marks: InvalidationIndex(isJournaled: true))
        await tier.start(now: .zero)
        let index = tier.marks
        let entries = Entries(limitBytes: 1 << 20, marks: index)
        let kept = try #require(entries.put("kept", bytes: 100, name: name))
        tier.enqueueWrite(kept, now: .zero)
        let found = try #require(tier.pendingWrite(name))
        let version = index.apply([.url(Array("origin/kept".utf8))], isSoft: false, now: .zero)
        entries.store.remove(kept)
        index.journaled(upTo: version)
        await tier.close()
        func effect() -> InvalidationMark.Effect? {
            for _ in 0..<4 {
                index.pruneMarks(leastVersionOnDisk: { .last }, fingerprintsOnDisk: { _ in [] })
            }
            return index.effect(on: kept.key, tags: [], version: kept.version)
        }
        #expect(
            effect() == .purged, "the writer no longer needs the mark, but the reader does")
        found.lease.release()
        #expect(effect() == nil)
    }

    @Test("The interval between prunings of marks counts from their execution, not their request")
    func reviews() async throws {
        let tier = tier(below: root.path)
        await tier.start(now: .zero)
        let entries = Entries(limitBytes: 1 << 20, marks: tier.marks)
        tier.marks.apply([.url(Array("origin/other".utf8))], isSoft: false, now: .zero)
        // It is newer than the mark and does not keep it.
        let entry = try #require(entries.put("one", bytes: 100, name: name))
        let time = Atomic<Int64>(0)
        let gate = DispatchSemaphore(value: 0)
        func ask(at milliseconds: Int64) {
            time.store(milliseconds, ordering: .relaxed)
            tier.pruneUnmatchedMarks { .zero + .milliseconds(time.load(ordering: .relaxed)) }
        }
        /// Returns when the writer has finished all earlier work.
        func catchUp() async {
            await withCheckedContinuation { done in
                tier.enqueueHandoff(entry, idle: .zero, touches: 0, now: .zero) { _ in done.resume()
                }
            }
        }
        // Marks newer than the last pruning but one stay: the third pruning drops it.
        tier.enqueueHandoff(entry, idle: .zero, touches: 0, now: .zero) { _ in gate.wait() }
        for milliseconds in [200, 300, 400] as [Int64] { ask(at: milliseconds) }
        gate.signal()
        await catchUp()
        #expect(tier.marks.count == 1)
        for (milliseconds, count) in [(500, 1), (599, 1), (600, 0)] as [(Int64, Int)] {
            ask(at: milliseconds)
            await catchUp()
            #expect(tier.marks.count == count, "\(milliseconds) ms")
        }
        await tier.close()
    }
}
