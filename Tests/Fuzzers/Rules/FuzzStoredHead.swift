import Cluster
import Ground
import HTTPRules
import Serving
import Wire

/// Heads received from a peer or read from disk, up to the responses for clients: the first byte
/// says whether the rest is the payload of a HELD, of a NOT_MODIFIED, or the description of a head
/// and the head.
///
/// Invariants: an accepted head is read again as one head of each response, with the length of its
/// body and no hop-by-hop line; it can be compared, selected from, updated and rendered again, and
/// is accepted again.
func fuzzStoredHead(_ bytes: [UInt8]) {
    let rest = Array(bytes.dropFirst())
    switch bytes[0] & 3 {
    case 0: held(rest, in: .held)
    case 1: held(rest, in: .notModified)
    default: stored(rest)
    }
}

private let now = Instant.zero + .seconds(1_000)
private let wall = WallTime(seconds: 1_700_000_000)

private func held(_ payload: [UInt8], in kind: PeerFrameKind) {
    let entry: PeerEntry
    switch try? PeerReply.read(kind, payload: payload.span) {
    case .held(let received), .notModified(let received): entry = received
    default: return
    }
    guard let offsets = entry.headOffsets else { return }
    let facts = entry.facts.entryFacts(at: now, requestedAt: .zero)
    // As it is sent to the next node.
    _ = PeerEntryFacts(facts, size: entry.facts.size, now: now)
    take(
        StoredHead(
            rendered: entry.head, partialStart: Int(offsets.partialStart),
            multipartStart: Int(offsets.multipartStart),
            notModifiedStart: Int(offsets.notModifiedStart), contentType: offsets.contentType,
            entityTag: entry.facts.entityTag),
        facts, size: entry.facts.size)
}

/// Reads the starts of the slices, extents of type and tag, size and flags, 20 bytes in all; then
/// the head.
private func stored(_ input: [UInt8]) {
    guard input.count >= 20 else { return }
    let number = { (place: Int) in Int(input[place]) | Int(input[place + 1]) << 8 }
    var facts = EntryMetadata(
        size: UInt64(number(14)), generatedAt: .zero, freshUntil: now,
        flags: EntryFlags(rawValue: UInt16(number(16))), lastModified: wall, date: wall,
        entityTag: .empty)
    facts.entityTag = Extent(start: number(10), count: number(12))
    take(
        StoredHead(
            rendered: Array(input[20...]), partialStart: number(0), multipartStart: number(2),
            notModifiedStart: number(4), contentType: Extent(start: number(6), count: number(8)),
            entityTag: facts.entityTag),
        facts, size: facts.size)
}

private func take(_ head: StoredHead, _ facts: EntryMetadata, size: UInt64?) {
    guard (try? head.validate(facts.flags, size: size)) != nil else { return }
    render(head, size: size)
    select(head, facts)
    let response = ResponseHead(
        status: 304, bytes: Array("ETag: \"new\"".utf8),
        lines: [
            FieldLine(
                id: .etag, name: Extent(start: 0, count: 4), value: Extent(start: 6, count: 5))
        ])
    let updated = StoredHead(
        head.updated(with: response, metadata: facts),
        size: StoredHead.status(head.bytes) == 204 ? nil : size, rules: .none,
        unstored: FieldNames(), received: wall)
    precondition((try? updated.validate(.isDated, size: size)) != nil, "not taken again")
    let image = StoredHead(
        head.updated(with: response, metadata: facts).imageResponse, size: facts.size)
    precondition((try? image.validate([], size: facts.size)) != nil, "not taken again")
    var validation = Validation()
    validation.add(head.bytes, metadata: facts)
    _ = VaryNames(renderedHead: head.bytes).names
}

/// Reads every response that is made of slices of the head.
private func render(_ head: StoredHead, size: UInt64?) {
    let status = StoredHead.status(head.bytes)
    let whole = reread([], head.bytes[...])
    precondition(whole.head.status == status)
    let framing: BodyFraming = status == 204 ? .none : size.map { .length($0) } ?? .untilClose
    precondition(whole.framing == framing)
    let ranged = "content-length: 1\r\ncontent-range: bytes 0-0/1\r\n"
    let partial = reread(
        "HTTP/1.1 206 Partial Content\r\n" + ranged, head.bytes[head.partial.range])
    precondition(partial.framing == .length(1))
    precondition(partial.head.lines(.contentRange).count == 1)
    let type = String(decoding: head.bytes[head.contentType.range], as: UTF8.self)
    precondition(!type.utf8.contains { $0 == 0x0D || $0 == 0x0A })
    let several = reread(
        "HTTP/1.1 206 Partial Content\r\ncontent-length: 9\r\ncontent-type: multipart/a\r\n",
        head.bytes[head.multipart.range])
    precondition(several.head.lines(.contentType).count == 1)
    let notModified = reread(
        "HTTP/1.1 304 Not Modified\r\n", head.bytes[head.notModified.range])
    precondition(notModified.head.lines(.contentLength).isEmpty)
}

private func reread(_ start: String, _ part: ArraySlice<UInt8>) -> FramedResponseHead {
    reread(Array(start.utf8), part)
}

/// Returns the head that a client reads, which must be one.
private func reread(_ start: [UInt8], _ part: ArraySlice<UInt8>) -> FramedResponseHead {
    let bytes = start + part + [0x0D, 0x0A]
    var parser = ResponseParser(limits: HeadLimits(headBytesMax: 1 << 20, fieldsMax: 1000))
    guard
        case .head(let head, let end) = parser.parse(bytes.span, from: 0, requestIsHead: false),
        end == bytes.count, head.isPersistent || head.framing == .untilClose
    else { preconditionFailure("taken and not read: \(bytes)") }
    let hop = HopByHop(head.head.lines, in: bytes.span)
    for line in head.head.lines {
        precondition(!hop.contains(line, in: bytes.span), "one hop")
    }
    return head
}

/// Evaluates requests that name the tag, or ranges.
private func select(_ head: StoredHead, _ facts: EntryMetadata) {
    let tag = Array(head.bytes[head.entityTag.range])
    for text in ["bytes=0-0", "bytes=0-1,5-,-3", "bytes=18446744073709551614-"] {
        var bytes = Array("If-None-Match: ".utf8) + tag
        let match = Extent(start: 15, count: tag.count)
        let start = bytes.count
        bytes += Array("Range: \(text)".utf8)
        let lines = [
            FieldLine(id: .ifNoneMatch, name: Extent(start: 0, count: 13), value: match),
            FieldLine(id: .ifRange, name: Extent(start: 0, count: 13), value: match),
            FieldLine(
                id: .range, name: Extent(start: start, count: 5),
                value: Extent(start: start + 7, count: text.utf8.count)),
        ]
        for isConditional in [true, false] {
            let selection = Selection.decide(
                RequestTraits(isHead: false, isConditional: isConditional, isRanged: true),
                lines: lines, in: bytes.span, entityTag: tag.span, facts: facts, rangesMax: 16,
                now: wall)
            guard case .parts(let ranges) = selection else { continue }
            precondition(ranges.allSatisfy { $0.first <= $0.last && $0.last < facts.size })
        }
    }
}
