import Cluster
import Ground
import Testing

@Suite("The page on the journal")
struct JournalPageTests {
    private static let node = NodeID(low: 1, high: 0)

    @Test("a file is written, and read, as the page has it")
    func page() throws {
        var journal = Journal(node: Self.node, epoch: 3, released: Stamp(epoch: 3, count: 0))
        var disk = JournalDisk()
        func run(_ effects: [JournalEffect]?) throws {
            for effect in try #require(effects) { disk.run(effect) }
            journal.synced()
        }
        var dice = Dice(seed: 7)
        let process = ProcessID(high: 2, low: 1)
        let record = InvalidationRecord(
            RecordName(stream: process, number: 5), content: [1, 2, 3])
        let memory = CountedMembers.Memory(
            standing: CountStanding(CountedSet(openedBy: Self.node)), joins: 1,
            records: [
                CountRecord(
                    base: CountedSet(openedBy: Self.node), member: Self.node,
                    ballot: CountBallot(round: 1, owner: Self.node), body: .joined(previous: nil))
            ])
        func write(_ batch: [LogWrite]) throws {
            try run(journal.write(batch, marks: { _, _ in [[1, 2]] }, using: &dice))
        }
        try write([.record(record, count: 9)])
        let floor = StreamPosition(process: ProcessID(high: 0, low: 3), count: 2)
        let retired = ProcessID(high: 0, low: 8)
        try write([
            .note(.memory(memory)),
            .note(.dropped(StreamPosition(process: process, count: 4))),
            .note(.retired(StreamPosition(process: retired, count: 6))),
            .note(.forgotten(retired)), .floor(floor, count: 10),
            .local(Purge(.soft, [.tag(Array("news".utf8))]), count: 11),
        ])
        let written = try #require(disk.contents[1])
        let vector = DoccPage.code(try DoccPage.text("Journal.md", behind: "Test vector"))
        #expect(written == vector)
        let (kept, found) = JournalRecovery.recover([1: vector], node: Self.node)
        #expect(kept.records == [record])
        #expect(kept.floors == [floor, StreamPosition(process: process, count: 4)])
        #expect(kept.retired == [] && found.memory == memory && found.epoch == 3)
        #expect(found.reached == Stamp(epoch: 3, count: 11) && found.damage == [])
    }
}
