import Ground
import HTTPRules
import Wire

/// Heads that a site forwards: the lowest bit of the first byte says whether the rest is a response
/// or a request, the other bits select the site's rules.
///
/// Invariants: a written head is read as one head with the same lines; no line is hop-by-hop; a
/// stored head is the same when it is rendered again, and after an update with itself.
func fuzzForward(_ bytes: [UInt8]) {
    let input = Array(bytes.dropFirst())
    if bytes[0] & 1 == 0 {
        request(input, choices: bytes[0])
    } else if let head = response(input) {
        pass(head, choices: bytes[0])
        store(head, choices: bytes[0])
    }
}

/// A written head has more lines than the head read.
private let limits = HeadLimits(headBytesMax: 1 << 20, fieldsMax: 1000)

private func names(_ text: String) -> FieldNames {
    var names = FieldNames()
    for word in text.split(separator: " ") {
        let bytes = Array(word.utf8)
        names.insert(bytes.span, at: bytes.indices)
    }
    return names
}

/// Checks that no field is hop-by-hop, by a list independent of the code under test.
private func checkLines(_ head: ResponseHead) {
    let oneHop = names(
        """
        connection keep-alive proxy-connection proxy-authenticate proxy-authorization \
        proxy-authentication-info te trailer transfer-encoding upgrade http2-settings
        """)
    for line in head.lines {
        precondition(!oneHop.contains(head.bytes.span, at: line.name.range), "one hop")
    }
}

/// Returns the final response that is the whole input, or `nil`.
private func response(_ input: [UInt8]) -> ResponseHead? {
    var parser = ResponseParser(limits: limits)
    guard case .head(let head, _) = parser.parse(input.span, from: 0, requestIsHead: true) else {
        return nil
    }
    return head.head
}

/// Returns the head in `bytes`, which must be one.
private func reread(_ bytes: [UInt8]) -> ResponseHead {
    let whole = bytes + [0x0D, 0x0A]
    guard let head = response(whole), head.bytes == whole else {
        preconditionFailure("written and not read: \(bytes)")
    }
    checkLines(head)
    return head
}

private func responseRules(_ choices: UInt8) -> ResponseFieldRules {
    if choices & 2 == 0 { return .none }
    let line = FieldSetting(name: "X-Set", value: "a b")
    return ResponseFieldRules(
        removed: names("server"), lines: line.map { [$0] } ?? [], tagsStripped: names("xkey"),
        clientCacheControl: choices & 4 == 0 ? nil : Array("max-age=60".utf8))
}

private func pass(_ head: ResponseHead, choices: UInt8) {
    var bytes: [UInt8] = []
    ResponseForwarder.append(head, rules: responseRules(choices), to: &bytes)
    let written = reread(bytes)
    precondition(written.status == head.status)
    precondition(written.lines.last?.id == .via)
}

private func store(_ head: ResponseHead, choices: UInt8) {
    let rules = responseRules(choices)
    let received = WallTime(seconds: 0)
    let first = StoredHead(
        head, size: 5, rules: rules, unstored: names("set-cookie"), received: received)
    let read = reread(first.bytes)
    precondition(read.lines == StoredHead.lines(first.bytes))
    precondition(read.status == StoredHead.status(first.bytes))
    let again = StoredHead(
        read, size: 5, rules: rules, unstored: FieldNames(), received: received)
    precondition(again == first)
    if ![204, 206, 304].contains(head.status) {
        precondition((try? first.validate(.isDated, size: 5)) != nil, "rendered and not taken")
    }
    var metadata = EntryMetadata(
        size: 5, generatedAt: .zero, freshUntil: .zero, flags: rules.flags(for: head),
        lastModified: nil, date: received, entityTag: first.entityTag)
    let updated = StoredHead(
        first.updated(with: head, metadata: metadata), size: 5, rules: rules,
        unstored: FieldNames(), received: received)
    _ = reread(updated.bytes)
    metadata.entityTag = updated.entityTag
    var validation = Validation()
    validation.add(updated.bytes, metadata: metadata)
    precondition(validation.entityTags.count <= 1)
}

private func request(_ input: [UInt8], choices: UInt8) {
    var parser = RequestParser(limits: limits)
    guard case .head = parser.parse(input.span, from: 0) else { return }
    let span = input.span
    let lines = parser.fields.copy()
    var rules = RequestFieldRules(authority: Array("o:81".utf8), basePath: Array("/b".utf8))
    rules.forwarded = [.added, .replaced, .unchanged][Int(choices >> 1 & 3) % 3]
    rules.normalisesAccept = choices & 8 != 0
    rules.normalisesAcceptEncoding = choices & 8 != 0
    rules.forwardsOthers = choices & 16 == 0
    rules.forwardedNames = names("accept-language x-real-ip")
    rules.removed = names("cookie")
    let request = ForwardedRequest(
        method: span.copy(parser.methodName.range), target: span.copy(parser.path.range),
        host: span.copy(parser.host.range), client: .v4(0x7F00_0001),
        remoteAddress: .v4(0x7F00_0002))
    let outcome = RequestForwarder.forward(
        request, lines, in: span, rules: rules,
        purpose: choices & 32 == 0 ? .pass : .store(Validation()))
    let forwarded = RequestForwarder.forwardedFields(request, lines, in: span, rules: rules)
    checkLines(ResponseHead(status: 200, bytes: forwarded.bytes, lines: forwarded.lines))
    guard case .send(let bytes) = outcome else { return }
    check(bytes + [0x0D, 0x0A], request)
}

private func check(_ written: [UInt8], _ request: ForwardedRequest) {
    var parser = RequestParser(limits: limits)
    // A client's CONNECT has no path, so that it is not forwarded in this way.
    if request.method.elementsEqual("CONNECT".utf8) { return }
    guard case .head(let end) = parser.parse(written.span, from: 0), end == written.count else {
        preconditionFailure("written and not read: \(written)")
    }
    precondition(Array(written[parser.methodName.range]) == request.method)
    precondition(parser.framing == .none)
    precondition(written[parser.host.range].elementsEqual("o:81".utf8))
    let head = ResponseHead(status: 200, bytes: written, lines: parser.fields.copy())
    precondition(head.lines(.host).count == 1 && head.lines(.expect).isEmpty)
    checkLines(head)
}
