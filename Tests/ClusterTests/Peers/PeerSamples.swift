import Cluster
import Ground
import Testing

/// One frame of each kind with all its fields, as on the protocol's page.
enum PeerSamples {
    static let all: [(name: String, stream: UInt32, frame: PeerFrame)] = [
        ("HELLO", 0, .hello(hello)),
        ("GOODBYE", 0, .goodbye(Goodbye(.duplicateIdentity, "zwei Häher"))),
        (
            "GOSSIP ping", 0,
            .gossip(Gossip(.ping(sequence: 0x0102_0304, updates: [record]), positions: [position]))
        ),
        (
            "GOSSIP ping request", 0,
            .gossip(Gossip(.pingRequest(sequence: 5, target: member.id, updates: [])))
        ),
        ("GOSSIP nack", 0, .gossip(Gossip(.nack(sequence: 6)))),
        ("GOSSIP table", 0, .gossip(Gossip(.table([record], isRequest: true)))),
        (
            "TOUCHES", 0,
            .touches([AgedTouch(digest: name(1).digest, count: 9, ageSeconds: 4)])
        ),
        (
            "OFFER", 0,
            .offers([
                PeerOffer(
                    digest: name(2).digest, size: 70_000, touches: 3, isJustFetched: true,
                    idleMinutes: 5)
            ])
        ),
        (
            "OFFER_ANSWERED", 0,
            .outcomes([
                OfferOutcome(digest: name(2).digest, isStored: true),
                OfferOutcome(digest: name(3).digest, isStored: false),
            ])
        ),
        ("SUMMARY", 0, .summary(summary)),
        ("INVALIDATIONS", 0, .invalidations(.push([invalidation]))),
        (
            "CONFIRMED", 0,
            .invalidations(
                .confirmation(
                    [position], members: [member.id, NodeID(low: 9, high: 0)],
                    view: VoterSetView(configuration: nil, hasVoted: true, isCurrent: false)))
        ),
        ("TOLD", 0, .invalidations(.appliedPositions([position]))),
        ("WANTED", 0, .invalidations(.repairRequest([range]))),
        (
            "REPAIR", 0,
            .invalidations(
                .repairResponse(
                    RepairResponse(
                        records: [invalidation], floors: [position], covered: [range])))
        ),
        (
            "ROUND", 0,
            .invalidations(.roundRequest(0x0807_0605_0403_0201, digest: 0x100F_0E0D_0C0B_0A09))
        ),
        (
            "ROUND_ANSWERED", 0,
            .invalidations(
                .roundResponse(
                    FenceResponse(
                        round: 6, synced: [position],
                        view: VoterSetView(
                            configuration: VoterConfiguration(VoterSet(foundedBy: member.id)),
                            hasVoted: true, isCurrent: true)),
                    retired: [StreamPosition(process: ProcessID(high: 2, low: 1), count: 3)]))
        ),
        ("ASK", 7, .question(question)),
        ("CREDIT", 7, .credit(65_536)),
        ("HELD", 7, .answer(.held(entry))),
        ("FETCHING", 7, .answer(.fetching)),
        ("FETCH_YOURSELF", 7, .answer(.declined(.unshareable))),
        ("ABSENT", 7, .answer(.absent)),
        ("BEHIND", 7, .answer(.behind)),
        ("NOT_MODIFIED", 7, .answer(.notModified(notModified))),
        (
            "ORIGIN_FAILED", 7,
            .answer(
                .originFailed(
                    PeerOriginFailure(
                        status: 503, cause: .status, mayServeStale: true, text: "busy")))
        ),
        ("END", 7, .end(StreamEnd(size: 1_000_000))),
        ("RESET", 7, .reset(.incompleteBody)),
    ]

    static let names = all.map(\.name)

    /// The frame with this name, its kind and its payload.
    static func named(
        _ name: String
    ) throws -> (frame: PeerFrame, kind: PeerFrameKind, payload: [UInt8]) {
        let sample = try #require(all.first { $0.name == name })
        let (kind, payload) = try sample.frame.parts(stream: sample.stream)
        return (sample.frame, kind, payload)
    }

    static let member = Member(
        id: NodeID(low: 0x0807_0605_0403_0201, high: 0x100F_0E0D_0C0B_0A09),
        process: ProcessID(high: 0x302F_2E2D_2C2B_2A29, low: 0x2827_2625_2423_2221),
        address: address("node-1.example:8082"), weight: 100, versions: 1...1,
        role: .isCaughtUp)

    static let hello = Hello(member: member, incarnation: Incarnation(epoch: 12, count: 2))
    static let record = MemberRecord(member, Incarnation(epoch: 12, count: 2), .suspected)
    static let position = StreamPosition(process: member.process, count: 77)

    static let summary = {
        var summary = MemberSummary(name: "node-1", version: "0.1.0")
        summary.adminURL = "http://node-1.example:8081"
        summary.state = .warning
        summary.condition = "The disk is slow"
        summary.counters.requests = 1_000
        summary.counters.hits = 900
        summary.counters.cacheable = 950
        summary.counters.serverErrors = 3
        summary.counters.originFetches = 60
        summary.counters.originFailures = 4
        summary.counters.sentBytes = 1 << 32
        summary.counters.originBytes = 5_000_000
        summary.counters.memoryUsedBytes = 256 << 20
        summary.counters.diskUsedBytes = 1 << 40
        var fence = SharedSetting("fence", digest: 0x0807_0605_0403_0201)
        fence.text = "10s"
        summary.settings = [fence]
        return summary
    }()

    static let invalidation = InvalidationRecord(
        RecordID(stream: member.process, number: 78), content: [1, 2, 3])
    static let range = StreamRange(process: member.process, numbers: 5...78)

    static let question = {
        var question = untracedQuestion
        question.trace = PeerQuery.RequestTrace(
            requestID: Array("id-7".utf8), traceParent: Array("00-1f-2a-01".utf8),
            traceState: Array("k=v".utf8))
        return question
    }()

    /// A query from a node without request ids.
    static let untracedQuestion = PeerQuery(
        .get, name: name(1), key: Array("http://a.example/b".utf8),
        negotiation: [.avif, .webp], entityTag: Array("\"v1\"".utf8),
        request: Array("Accept: */*\r\n".utf8),
        positions: [position], invalidations: [[1, 2, 3]])

    static let entry: PeerEntry = {
        var entry = heldEntry
        entry.facts.selection = .webp
        return entry
    }()

    private static let heldEntry = PeerEntry(
        status: 200, source: .fetch,
        facts: PeerEntryFacts(
            EntryMetadata(
                size: 0, generatedAt: .zero, validatedAt: .zero + .milliseconds(800),
                freshUntil: .zero + .seconds(60),
                flags: [.strongDate, .isDated], staleWhileRevalidateSeconds: 5,
                staleIfErrorSeconds: 600, lastModified: WallTime(seconds: 784_111_777),
                date: WallTime(seconds: 784_111_999), entityTag: Extent(start: 6, count: 4)),
            size: nil, now: .zero + .milliseconds(1_500)),
        version: InvalidationVersion(epoch: 12, count: 345), head: Array("ETag: \"v1\"\r\n".utf8),
        headOffsets: HeadOffsets(
            partialStart: 0, multipartStart: 6, notModifiedStart: 12, contentType: .empty),
        tags: [Array("cats".utf8), Array("jays".utf8)], key: Array("http://a.example/b".utf8))

    static var notModified: PeerEntry {
        var entry = entry
        entry.source = .memory
        entry.facts.size = 4_096
        entry.facts.entityTag = .empty
        (entry.head, entry.headOffsets, entry.tags, entry.key) = ([], nil, [], [])
        return entry
    }

    static func name(_ number: UInt8) -> EntryName {
        let bytes = (0..<32).map { number &* 32 &+ $0 }
        return EntryName(bytes.span)
    }

    static func address(_ text: String) -> PeerAddress {
        guard let written = HostPort(text), let address = PeerAddress(written) else {
            preconditionFailure("\(text) is no address")
        }
        return address
    }
}
