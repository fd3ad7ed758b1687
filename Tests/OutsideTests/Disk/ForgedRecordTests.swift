import Foundation
import Ground
import Harness
import Testing
import Tiers

extension Outside {
    @Suite("A record forged with a valid checksum is dropped, and its node goes on")
    struct ForgedRecordTests {
        /// A manipulation of a record in a node's directory.
        struct Forgery: Sendable, CustomTestStringConvertible {
            let testDescription: String
            let change: @Sendable (inout DiskRecord) -> Void

            static let all = [
                Forgery(testDescription: "a line in the tag") {
                    $0.write("\r\nx: y", at: Int($0.layout.entityTag.start) + 1)
                },
                Forgery(testDescription: "a tag that is none") {
                    $0.write("'", at: Int($0.layout.entityTag.start))
                },
                Forgery(testDescription: "another place of the tag") {
                    $0.layout.entityTag.start -= 3
                },
                Forgery(testDescription: "no colon") { record in
                    for place in record.head.indices where record.head[place] == 0x3A {
                        record.head[place] = 0x2D
                    }
                },
                Forgery(testDescription: "no line end at the end") {
                    $0.write("x", at: $0.head.count - 1)
                },
                Forgery(testDescription: "another length") {
                    $0.write("1", at: Int($0.layout.partialStart) - 3)
                },
                Forgery(testDescription: "a part that begins within a line") {
                    $0.layout.notModifiedStart += 1
                },
                Forgery(testDescription: "parts in another order") {
                    let start = $0.layout.partialStart
                    $0.layout.partialStart = $0.layout.multipartStart
                    $0.layout.multipartStart = start
                },
                Forgery(testDescription: "another status") { $0.write("1", at: 9) },
                Forgery(testDescription: "no status line") { $0.write("X", at: 0) },
                Forgery(testDescription: "an index of variants") { $0.flags = .isVariantIndex },
                Forgery(testDescription: "nothing that is stored") { $0.flags = .isHitForMiss },
            ]
        }

        @Test(
            "A forged record is not served, fresh or stale",
            arguments: Forgery.all, [true, false])
        func forged(forgery: Forgery, isFresh: Bool) throws {
            let stage = try DiskStage("--disk-limit", "16MiB")
            let image = TestImage.generated(.png, byteCount: 3_007, seed: 831)
            let path = stage.origin.serve(image, fields: [lasting, "ETag: \"abcdefgh\""])
            #expect(try stage.get(path, expecting: image).matches(image))
            try stage.settle()
            stage.stop(gently: true)
            try forge(stage.origin.url(path), in: stage) { record in
                if !isFresh { record.times.freshUntil = record.times.generated }
                forgery.change(&record)
            }
            try stage.restart()
            let response = try stage.get(path, expecting: image)
            #expect(response.matches(image) && response.detail == "origin", "\(response)")
            #expect(response.fields.all("ETag") == ["\"abcdefgh\""], "\(response)")
            #expect(stage.fetches(path) == 2)
            let request = try #require(stage.origin.requests(path).last)
            #expect(request.fields.all("If-None-Match").isEmpty, "\(request)")
            #expect(try stage.figure("nuthatch_heads_refused_total{source=\"disk\"}") == 1)
            #expect(try stage.figure("nuthatch_disk_records_total{result=\"lost\"}") == 1)
            expectSoon(20, "\(stage.node.output)") {
                stage.said("level=warning", "a record on disk is lost", "segment-") == 1
            }
            #expect(stage.node.isRunning)
        }

        @Test("A record rewritten unchanged is served")
        func asItWas() throws {
            let stage = try DiskStage("--disk-limit", "16MiB")
            let image = TestImage.generated(.png, byteCount: 3_007, seed: 831)
            let path = stage.origin.serve(image, fields: [lasting, "ETag: \"abcdefgh\""])
            #expect(try stage.get(path, expecting: image).matches(image))
            try stage.settle()
            stage.stop(gently: true)
            try forge(stage.origin.url(path), in: stage) { $0.accessCount += 1 }
            try stage.restart()
            let response = try stage.get(path, expecting: image)
            #expect(response.matches(image) && response.detail == "disk", "\(response)")
            #expect(try stage.figure("nuthatch_heads_refused_total{source=\"disk\"}") == 0)
        }

        private struct NotOnDisk: Error {
            let url: String
        }

        /// Rewrites the record of `url`, modified, with a valid checksum.
        private func forge(
            _ url: String, in stage: DiskStage, _ change: (inout DiskRecord) -> Void
        ) throws {
            let folder = stage.directory.appending(path: "node-0")
            for name in try FileManager.default.contentsOfDirectory(atPath: folder.path)
            where name.hasPrefix("segment-") {
                let segment = folder.appending(path: name)
                let data = try Data(contentsOf: segment)
                guard let key = data.range(of: Data(url.utf8)) else { continue }
                let bytes = [UInt8](data)
                let offset = key.lowerBound - DiskRecord.fixedBytes
                let salt = try SegmentHeader(
                    bytes.span, nodeID: NodeID(bytes.span, at: 24),
                    segmentBytes: bytes.span.little64(at: 40)
                ).salt
                let fixed = bytes.span.extracting(offset..<bytes.count)
                let space = bytes.count - offset
                guard let extent = DiskRecord.extent(fixed, space: space) else { break }
                var record = try DiskRecord(
                    meta: fixed.extracting(0..<extent.metaBytes), salt: salt,
                    offset: UInt64(offset))
                change(&record)
                let forged = record.metaBytes(salt: salt, offset: UInt64(offset))
                #expect(forged.count == extent.metaBytes)
                let file = try FileHandle(forUpdating: segment)
                try file.seek(toOffset: UInt64(offset))
                try file.write(contentsOf: Data(forged))
                try file.close()
                return
            }
            throw NotOnDisk(url: url)
        }
    }
}

extension DiskRecord {
    /// Overwrites as many bytes of the head with `text`.
    fileprivate mutating func write(_ text: String, at place: Int) {
        head.replaceSubrange(place..<place + text.utf8.count, with: text.utf8)
    }
}
