import Cluster
import Ground
import Harness
import Testing

extension Outside {
    @Suite("A member that sends false statements about a response gains nothing and harms no node")
    struct LyingPeerTests {
        /// A member's statement about an image, with its deviation from the truth.
        struct Tale: Sendable, CustomTestStringConvertible {
            var testDescription: String
            var isTrue = false
            var status: UInt16 = 200
            var tag = "\"a\""
            var length: String?
            var more = ""
            var flags: EntryFlags = []
            /// Offsets added to the true positions of the tag and of the parts.
            var shifts: (tag: Int, parts: Int) = (0, 0)

            static let truth = Tale(testDescription: "nothing", isTrue: true)
            static let lies = [
                Tale(testDescription: "a line in the tag", tag: "\"a\r\nset-cookie: stolen=1\""),
                Tale(testDescription: "a line feed in the tag", tag: "\"a\nx: y\""),
                Tale(testDescription: "no line in the tag", tag: "\"a\r\n\r\n\""),
                Tale(testDescription: "a tag that is none", tag: "a\""),
                Tale(testDescription: "another place of the tag", shifts: (2, 0)),
                Tale(testDescription: "parts within lines", shifts: (0, 3)),
                Tale(testDescription: "another length", length: "12"),
                Tale(testDescription: "a length that is none", length: "many"),
                Tale(testDescription: "no length", length: ""),
                Tale(testDescription: "two lengths", more: "content-length: 3\r\n"),
                Tale(testDescription: "a field of one hop", more: "transfer-encoding: chunked\r\n"),
                Tale(testDescription: "another status", status: 404),
                Tale(testDescription: "no answer", flags: .isHitForMiss),
            ]

            /// Returns the statement about `image` at `url`, which has been stale for a while.
            func entry(_ url: String, _ image: TestImage) -> PeerEntry {
                let size = image.bytes.count
                let length = self.length.map { $0.isEmpty ? "" : "content-length: \($0)\r\n" }
                let parts = [
                    "HTTP/1.1 200 OK\r\n" + (length ?? "content-length: \(size)\r\n"),
                    "content-type: image/png\r\n", "accept-ranges: bytes\r\n" + more,
                    "x-content-type-options: nosniff\r\ncache-control: max-age=1\r\netag: ",
                ]
                let starts = (1...4).map { parts.prefix($0).reduce(0) { $0 + $1.utf8.count } }
                let facts = EntryMetadata(
                    size: UInt64(size), generatedAt: .zero, validatedAt: .zero,
                    freshUntil: .zero + .seconds(isTrue ? 3_600 : -3_600), flags: flags,
                    lastModified: nil, date: WallTime(seconds: 1_700_000_000),
                    entityTag: Extent(start: starts[3] + shifts.tag, count: tag.utf8.count))
                return PeerEntry(
                    status: status, source: .memory,
                    facts: PeerEntryFacts(facts, size: UInt64(size), now: .zero),
                    version: .zero,
                    head: Array((parts.joined() + tag + "\r\n").utf8),
                    headOffsets: HeadOffsets(
                        partialStart: UInt32(starts[0] + shifts.parts),
                        multipartStart: UInt32(starts[1] + shifts.parts),
                        notModifiedStart: UInt32(starts[2] + shifts.parts),
                        contentType: Extent(start: starts[0] + 14, count: 9)),
                    key: Array(url.utf8))
            }
        }

        private static let refused = "nuthatch_heads_refused_total{source=\"peer\"}"

        @Test("A true statement is accepted", arguments: [Tale.truth])
        func truth(tale: Tale) throws {
            let stage = try ClusterStage(1, keepsOnDisk: false)
            let image = TestImage.generated(.png, byteCount: 3_000, seed: 830)
            let path = stage.origin.serve(image, fields: [lasting])
            let peer = try LyingPeer(to: stage.peerPort(of: 0))
            #expect(try peer.offer(tale.entry(stage.origin.url(path), image), image.bytes))
            let response = try stage.get(path, from: 0, expecting: image)
            #expect(response.matches(image) && response.detail == "memory", "\(response)")
            #expect(response.fields.all("ETag") == ["\"a\""])
            #expect(stage.fetches(path) == 0)
            #expect(stage.nodes[0].metric(Self.refused) == 0)
        }

        @Test("A false statement is refused, logged once and counted", arguments: Tale.lies)
        func lie(tale: Tale) throws {
            let stage = try ClusterStage(1, keepsOnDisk: false)
            let node = stage.nodes[0]
            let image = TestImage.generated(.png, byteCount: 3_000, seed: 830)
            let path = stage.origin.serve(image, fields: [lasting])
            let peer = try LyingPeer(to: stage.peerPort(of: 0))
            let entry = tale.entry(stage.origin.url(path), image)
            for _ in 0..<2 { #expect(try !peer.offer(entry, image.bytes)) }
            // If it were kept, it would now be stale and cause a revalidation.
            let response = try stage.get(path, from: 0, expecting: image)
            #expect(response.matches(image) && response.detail == "origin", "\(response)")
            #expect(response.fields.all("Set-Cookie").isEmpty, "\(response)")
            let request = try #require(stage.origin.requests(path).first)
            #expect(request.fields.all("If-None-Match").isEmpty, "\(request)")
            #expect(node.metric(Self.refused) == 2)
            expectSoon(20, "\(node.output)") {
                node.output.split(separator: "\n").count {
                    $0.contains("response from a peer rejected") && $0.contains("level=warning")
                } == 1
            }
            #expect(node.isRunning)
            let again = try stage.get(path, from: 0, expecting: image)
            #expect(again.matches(image) && again.isHit, "\(again)")
        }

        /// Returns a node's view of a member: declared weight, effective weight and share of the
        /// ring.
        private func weight(of id: NodeID, at node: NodeProcess) throws -> Weight? {
            let rows = try node.document("/admin/v1/members")["members"] as? [[String: Any]] ?? []
            return rows.first { $0["node"] as? String == "\(id)" }.map { row in
                Weight(
                    declared: row["weight"] as? Int ?? 0,
                    counted: row["weight_counted"] as? Int ?? 0,
                    share: row["ring_share"] as? Double ?? 0)
            }
        }

        private struct Weight {
            let declared: Int
            let counted: Int
            let share: Double
        }

        @Test("A member that declares any weight owns at most what operators permit, and is named")
        func weight() throws {
            let stage = try ClusterStage(3, keepsOnDisk: false)
            let peer = try LyingPeer(to: stage.peerPort(of: 0), weight: .max, role: .isCaughtUp)
            // It sends no replies and is declared dead after a while.
            var seen: [Int: Weight] = [:]
            let isSeen = try Deadline.seconds(30).waitUntil {
                for (index, node) in stage.nodes.enumerated() where seen[index] == nil {
                    let found = try weight(of: peer.id, at: node)
                    if let found, found.share > 0 { seen[index] = found }
                }
                return seen.count == stage.nodes.count
            }
            #expect(isSeen, "\(seen)")
            for found in seen.values {
                #expect(found.declared == 65_535 && found.counted == 400, "\(found)")
                // 400 of 700.
                #expect((0.54...0.60).contains(found.share), "\(found)")
            }
            for node in stage.nodes {
                expectSoon(20, "\(node.output)") {
                    node.lineCount(
                        containing: "weight is limited", "\(peer.id)", "ring-weight-limit")
                        == 1
                }
            }
            withExtendedLifetime(peer) {}
        }
    }
}
