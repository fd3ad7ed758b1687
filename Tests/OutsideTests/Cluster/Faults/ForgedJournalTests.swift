import Cluster
import Foundation
import Ground
import Harness
import Testing

extension Outside {
    @Suite("A journal with two records of the same number")
    struct ForgedJournalTests {
        @Test("Such a journal is discarded at the start, and its node becomes a new member")
        func twoRecords() throws {
            let stage = try ClusterStage(3, isNamed: true, "--fence", "2s")
            // Records that all nodes have applied are no longer kept. Both purges end before the
            // paused node counts as fenced, from which moment on they would be complete.
            stage.nodes[1].pause()
            for tag in ["one", "two"] {
                #expect(
                    try stage.nodes[2].purge("{\"tag\":\"\(tag)\"}", timeout: "0s").status == 202)
            }
            let id = try ClusterStage.id(of: stage.nodes[2])
            stage.nodes[2].kill()
            stage.nodes[1].resume()
            try forge(of: #require(NodeID(id)), in: stage.cache(2).appending(path: "node-0"))

            try stage.restart(2)
            try stage.settle(stage.nodes)
            #expect(try ClusterStage.id(of: stage.nodes[2]) != id)
            #expect(stage.nodes[2].lineCount(containing: "contradicts another copy of record") == 1)
            #expect(stage.nodes[2].lineCount(containing: "every entry is revalidated once") == 1)
        }

        /// Repeats a journal record with the content of another record.
        private func forge(of node: NodeID, in folder: URL) throws {
            var files: [UInt64: [UInt8]] = [:]
            for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
                let parts = name.split(separator: "-")
                guard parts.first == "journal", let number = UInt64(parts.last ?? "") else {
                    continue
                }
                files[number] = [UInt8](try Data(contentsOf: folder.appending(path: name)))
            }
            let (kept, found) = JournalRecovery.recover(files, node: node)
            #expect(found.damage == [])
            let tags = kept.records.filter { $0.id.stream == kept.records.last?.id.stream }
            try #require(tags.count >= 2)
            let other = InvalidationRecord(tags[0].id, content: tags[1].encodedContent)
            var journal = Journal(
                node: node, epoch: try #require(found.epoch), recovered: found)
            var dice = SplitMix64(seed: 7)
            let effects = try #require(
                journal.write(
                    [.record(other, count: found.latestVersion.count)], marks: { _, _ in [] },
                    using: &dice))
            for effect in effects {
                switch effect {
                case .create(let number): files[number] = []
                case .append(let number, let bytes): files[number, default: []] += bytes
                case .delete(let number): files[number] = nil
                case .sync, .syncDirectory: break
                }
            }
            for (number, bytes) in files {
                try Data(bytes).write(to: folder.appending(path: "journal-\(number)"))
            }
        }
    }
}
