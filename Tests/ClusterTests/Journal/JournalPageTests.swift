import Cluster
import Ground
import Testing

@Suite("The page on the journal's format")
struct JournalPageTests {
    private static let node = NodeID(low: 1, high: 0)

    @Test("A file is written and read as in the page's vector")
    func page() throws {
        var journal = Journal(
            node: Self.node, epoch: 3, released: InvalidationVersion(epoch: 3, count: 0))
        var disk = JournalDisk()
        func run(_ effects: [JournalEffect]?) throws {
            for effect in try #require(effects) { disk.run(effect) }
            journal.synced()
        }
        var dice = SplitMix64(seed: 7)
        let process = ProcessID(high: 2, low: 1)
        let record = InvalidationRecord(
            RecordID(stream: process, number: 5), content: [1, 2, 3])
        let memory = VoterSetConsensus.PersistentState(
            configuration: VoterConfiguration(VoterSet(foundedBy: Self.node)), joinCount: 1,
            records: [
                ConsensusRecord(
                    base: VoterSet(foundedBy: Self.node), member: Self.node,
                    ballot: Ballot(round: 1, proposer: Self.node), body: .joined(previous: nil))
            ])
        func write(_ batch: [LogWrite]) throws {
            try run(journal.write(batch, marks: { _, _ in [[1, 2]] }, using: &dice))
        }
        try write([.record(record, count: 9)])
        let floor = StreamPosition(process: ProcessID(high: 0, low: 3), count: 2)
        let retired = ProcessID(high: 0, low: 8)
        try write([
            .metadata(.consensusState(memory)),
            .metadata(.dropped(StreamPosition(process: process, count: 4))),
            .metadata(.retired(StreamPosition(process: retired, count: 6))),
            .metadata(.forgotten(retired)), .floor(floor, count: 10),
            .localPurge(Purge(.soft, [.tag(Array("news".utf8))]), count: 11),
        ])
        let written = try #require(disk.contents[1])
        let vector = DoccPage.code(try DoccPage.text("Journal.md", behind: "Test vector"))
        #expect(written == vector)
        let (kept, found) = JournalRecovery.recover([1: vector], node: Self.node)
        #expect(kept.records == [record])
        #expect(kept.floors == [floor, StreamPosition(process: process, count: 4)])
        #expect(kept.retired == [] && found.persistentState == memory && found.epoch == 3)
        #expect(
            found.latestVersion == InvalidationVersion(epoch: 3, count: 11) && found.damage == [])
    }
}
