import Cluster
import Ground

/// Random frames that may be sent, often empty or at a limit.
extension PeerFrame {
    static func random(using dice: inout SplitMix64) -> PeerFrame {
        switch Int.random(in: 0..<15, using: &dice) {
        case 0: return .hello(.random(using: &dice))
        case 1:
            return .goodbye(Goodbye(.init(rawValue: dice.number()), dice.text(bytesMax: 256)))
        case 2: return .gossip(.random(using: &dice))
        case 3: return .touches(dice.list(max: 1_024) { .random(using: &$0) })
        case 4: return .offers(dice.list(max: 512) { .random(using: &$0) })
        case 5: return .outcomes(dice.list(max: 512) { .random(using: &$0) })
        case 6: return .question(.random(using: &dice))
        case 7, 8: return .answer(.random(using: &dice))
        case 9: return .end(StreamEnd(size: dice.number(), trailers: dice.bytes(max: 700)))
        case 10, 11: return .invalidations(.random(using: &dice, bytesMax: 60_000))
        case 12: return .summary(.random(using: &dice))
        case 13: return .reset(.init(rawValue: dice.number()))
        default: return .credit(UInt32.random(in: 1...UInt32.max, using: &dice))
        }
    }
}

extension AgedTouch {
    static func random(using dice: inout SplitMix64) -> AgedTouch {
        AgedTouch(
            digest: EntryDigest(first: dice.number(), second: dice.number()),
            count: dice.number(), ageSeconds: dice.number())
    }
}

extension PeerOffer {
    static func random(using dice: inout SplitMix64) -> PeerOffer {
        PeerOffer(
            digest: dice.name().digest, size: dice.number(), touches: dice.number(),
            isJustFetched: Bool.random(using: &dice), idleMinutes: dice.number())
    }
}

extension OfferOutcome {
    static func random(using dice: inout SplitMix64) -> OfferOutcome {
        OfferOutcome(digest: dice.name().digest, isStored: Bool.random(using: &dice))
    }
}

extension MemberSummary {
    static func random(using dice: inout SplitMix64) -> MemberSummary {
        var summary = MemberSummary(
            name: dice.text(bytesMax: 256), version: dice.text(bytesMax: 256))
        summary.adminURL =
            ["", "http://a.example:1", "https://[::1]/x/"]
            .randomElement(using: &dice) ?? ""
        summary.state = State.allCases.randomElement(using: &dice) ?? .ready
        summary.condition = dice.text(bytesMax: 256)
        summary.counters.requests = dice.number()
        summary.counters.cacheable = dice.number()
        summary.counters.originBytes = dice.number()
        summary.counters.diskUsedBytes = dice.number()
        summary.settings = dice.list(max: settingsMax) { dice in
            var setting = SharedSetting(dice.text(bytesMax: 64), digest: dice.number())
            setting.text = dice.text(bytesMax: 64)
            return setting
        }
        return summary
    }
}

extension StreamPosition {
    static func random(using dice: inout SplitMix64) -> StreamPosition {
        StreamPosition(process: ProcessID(using: &dice), count: dice.number())
    }
}

extension Hello {
    static func random(using dice: inout SplitMix64) -> Hello {
        let record = MemberRecord.random(using: &dice)
        var member = record.member
        member.versions = 1...member.versions.upperBound
        return Hello(member: member, incarnation: record.incarnation, limits: .random(using: &dice))
    }
}

extension LinkLimits {
    static func random(using dice: inout SplitMix64) -> LinkLimits {
        LinkLimits(
            dataBytesMax: UInt32.random(in: 1_024...UInt32.max, using: &dice),
            payloadBytesMax: UInt32.random(in: 65_536...UInt32.max, using: &dice),
            streamsMax: UInt32.random(in: 1...UInt32.max, using: &dice),
            windowBytes: UInt32.random(in: 1_024...UInt32(Int32.max), using: &dice))
    }
}

extension MemberRecord {
    static func random(using dice: inout SplitMix64) -> MemberRecord {
        let newest: UInt16 = dice.number() | 1
        let member = Member(
            id: NodeID(using: &dice), process: ProcessID(using: &dice),
            address: dice.address(), weight: dice.number() | 1,
            versions: UInt16.random(in: 1...newest, using: &dice)...newest,
            role: .init(rawValue: dice.number()))
        return MemberRecord(
            member, Incarnation(epoch: dice.number(), count: dice.number()),
            State.allCases.randomElement(using: &dice) ?? .alive)
    }
}

extension Gossip {
    static func random(using dice: inout SplitMix64, recordsMax: Int = 40) -> Gossip {
        let news = dice.list(max: recordsMax) { MemberRecord.random(using: &$0) }
        let knowledge = dice.list(max: 40) { StreamPosition.random(using: &$0) }
        let message: GossipMessage =
            switch Int.random(in: 0..<6, using: &dice) {
            case 0: .ping(sequence: dice.number(), updates: news)
            case 1: .ack(sequence: dice.number(), updates: news)
            case 2:
                .pingRequest(sequence: dice.number(), target: NodeID(using: &dice), updates: news)
            case 3: .nack(sequence: dice.number())
            case 4: .updates(news)
            default: .table(news, isRequest: Bool.random(using: &dice))
            }
        return Gossip(message, positions: knowledge)
    }
}

extension PeerQuery {
    static func random(using dice: inout SplitMix64) -> PeerQuery {
        var question = PeerQuery(
            Bool.random(using: &dice) ? .get : .probe, name: dice.name(),
            key: dice.bytes(max: 16_384), negotiation: .init(rawValue: dice.number()),
            entityTag: dice.bytes(max: 1_024), request: dice.bytes(max: 32_768),
            positions: dice.list(max: 256) { .random(using: &$0) },
            invalidations: dice.list(max: 15) { $0.bytes(max: 268) })
        question.trace = PeerQuery.RequestTrace(
            requestID: dice.bytes(max: 128), traceParent: dice.bytes(max: 128),
            traceState: dice.bytes(max: 512))
        return question
    }
}

extension PeerReply {
    static func random(using dice: inout SplitMix64) -> PeerReply {
        switch Int.random(in: 0..<8, using: &dice) {
        case 0: return Bool.random(using: &dice) ? .fetching : .interim(dice.bytes(max: 900))
        case 1: return .declined(.init(rawValue: dice.number()))
        case 2: return .absent
        case 3: return .behind
        case 4:
            var entry = PeerEntry.random(using: &dice)
            if Bool.random(using: &dice) {
                (entry.head, entry.headOffsets, entry.facts.entityTag) = ([], nil, .empty)
            }
            return .notModified(entry)
        case 5:
            return .originFailed(
                PeerOriginFailure(
                    status: dice.number(), cause: .init(rawValue: dice.number()),
                    mayServeStale: Bool.random(using: &dice), text: dice.text(bytesMax: 256)))
        default: return .held(.random(using: &dice))
        }
    }
}

extension PeerEntry {
    static func random(using dice: inout SplitMix64) -> PeerEntry {
        let head = dice.bytes(max: 20_000)
        let now = Instant(nanoseconds: Int64.random(in: 0...(1 << 60), using: &dice))
        let facts = EntryMetadata(
            size: 0,
            generatedAt: now
                - Interval.milliseconds(Int64.random(in: -9...99_999_999, using: &dice)),
            freshUntil: now
                + Interval.milliseconds(Int64.random(in: -99_999...99_999_999, using: &dice)),
            flags: .init(rawValue: dice.number()), staleWhileRevalidateSeconds: dice.number(),
            staleIfErrorSeconds: dice.number(),
            lastModified: Bool.random(using: &dice)
                ? nil : WallTime(seconds: Int64.random(in: -9...9_999_999_999, using: &dice)),
            date: WallTime(seconds: Int64.random(in: -9...9_999_999_999, using: &dice)),
            entityTag: dice.extent(in: head.count))
        let place = { (dice: inout SplitMix64) in
            UInt32.random(in: 0...UInt32(head.count), using: &dice)
        }
        var entry = PeerEntry(
            status: dice.number(), source: .init(rawValue: dice.number()),
            facts: PeerEntryFacts(
                facts, size: Bool.random(using: &dice) ? nil : dice.number(), now: now),
            version: dice.version(), head: head,
            headOffsets: Bool.random(using: &dice)
                ? nil
                : HeadOffsets(
                    partialStart: place(&dice), multipartStart: place(&dice),
                    notModifiedStart: place(&dice), contentType: dice.extent(in: head.count)),
            tags: dice.list(max: 60) { $0.bytes(max: 400) }, key: dice.bytes(max: 16_384))
        entry.terms.restrictions = .init(rawValue: dice.number())
        entry.terms.originErrorStatus =
            Bool.random(using: &dice) ? nil : .random(in: 1...599, using: &dice)
        entry.policyDigest = dice.number()
        if Bool.random(using: &dice) { entry.facts.selection = .init(rawValue: dice.number()) }
        return entry
    }
}

extension SplitMix64 {
    /// A random number, with a quarter of the results extreme.
    mutating func number<Number: FixedWidthInteger & UnsignedInteger>() -> Number {
        switch Int.random(in: 0..<8, using: &self) {
        case 0: 0
        case 1: .max - 1
        default: Number(truncatingIfNeeded: next())
        }
    }

    /// Random bytes, often none or the maximum.
    mutating func bytes(max: Int) -> [UInt8] {
        (0..<count(max: max)).map { _ in UInt8(truncatingIfNeeded: next()) }
    }

    mutating func list<Element>(max: Int, _ element: (inout SplitMix64) -> Element) -> [Element] {
        (0..<count(max: max)).map { _ in element(&self) }
    }

    private mutating func count(max: Int) -> Int {
        switch Int.random(in: 0..<8, using: &self) {
        case 0, 1: 0
        case 2: max
        case 3: Int.random(in: 0...max, using: &self)
        default: Int.random(in: 0...min(max, 9), using: &self)
        }
    }

    mutating func text(bytesMax: Int) -> String {
        var text = ""
        let wanted = count(max: bytesMax)
        while text.utf8.count + 4 <= wanted {
            text.unicodeScalars.append(["a", "ü", "€", "𝄞"].randomElement(using: &self) ?? "b")
        }
        return text
    }

    mutating func name() -> EntryName {
        let bytes = (0..<32).map { _ in UInt8(truncatingIfNeeded: next()) }
        return EntryName(bytes.span)
    }

    mutating func version() -> InvalidationVersion {
        InvalidationVersion(epoch: number(), count: number())
    }

    mutating func extent(in bytesCount: Int) -> Extent {
        let start = Int.random(in: 0...bytesCount, using: &self)
        return Extent(start: start, count: Int.random(in: 0...bytesCount - start, using: &self))
    }

    mutating func address() -> PeerAddress {
        let port = UInt16.random(in: 1...UInt16.max, using: &self)
        switch Int.random(in: 0..<3, using: &self) {
        case 0: return PeerAddress(.v4(UInt32(truncatingIfNeeded: next())), port: port)
        case 1: return PeerAddress(.v6(UInt128(next()) << 64 | UInt128(next())), port: port)
        default:
            let label = String(repeating: "n", count: Int.random(in: 1...63, using: &self))
            let labels = Int.random(in: 1...3, using: &self)
            let host = Array(repeating: label, count: labels).joined(separator: ".")
            return PeerSamples.address("\(host):\(port)")
        }
    }
}
