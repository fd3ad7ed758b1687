import Ground
import HTTPRules
import Testing

@Suite struct VaryNamesTests {
    private static let table: [([String], [String])] = [
        ([], []),
        ([""], []),
        ([" ,, , "], []),
        (["Accept"], ["accept"]),
        (["Accept, Accept-Encoding"], ["accept", "accept-encoding"]),
        (["Accept-Encoding,Accept"], ["accept", "accept-encoding"]),
        (["b", "a", "c"], ["a", "b", "c"]),
        ([",b ,\t, a,"], ["a", "b"]),
        (["Cookie", "COOKIE, cookie"], ["cookie"]),
        (["x-a!#$%&'*+-.^_`|~9"], ["x-a!#$%&'*+-.^_`|~9"]),
        (["**"], ["**"]),
        (["unheard-of"], ["unheard-of"]),
    ]

    @Test("RFC 9110 §12.5.5: the names in all lines of Vary, each once", arguments: table)
    func nominated(lines: [String], expected: [String]) {
        let vary = VaryNames(ResponseHead(status: 200, fields: lines.map { "Vary: \($0)" }))
        #expect(vary.names.names.map(\.text) == expected)
        #expect(vary.isSelectable && !vary.isWildcard)
    }

    @Test(
        "RFC 9111 §4.1: a star or an invalid name matches no request",
        arguments: [
            ["*"], ["Accept, *"], ["*, Accept"], ["Accept", "*"], [",*,"], ["a b"], ["\"accept\""],
            ["accept;q=1"], ["a\u{7F}"], ["accept, (x)"], ["caf\u{E9}"], ["a:b"], ["ok", "a/b"],
        ])
    func everything(lines: [String]) {
        let vary = VaryNames(ResponseHead(status: 200, fields: lines.map { "Vary: \($0)" }))
        #expect(vary.isWildcard && !vary.isSelectable)
    }

    @Test("At most sixteen names of up to 255 bytes are supported")
    func limits() {
        let names = (0..<16).map { "n\($0)" }
        let full = VaryNames(ResponseHead(200, "Vary: \(names.joined(separator: ","))"))
        #expect(full.isSelectable && VariantIndex.canHold(full.names))
        let again = VaryNames(ResponseHead(200, "Vary: \((names + names).joined(separator: ","))"))
        #expect(again == full)
        let more = VaryNames(ResponseHead(200, "Vary: \((names + ["o"]).joined(separator: ","))"))
        #expect(more.exceedsLimits && !more.isSelectable && !more.isWildcard)
        let long = String(repeating: "a", count: 255)
        #expect(VaryNames(ResponseHead(200, "Vary: \(long)")).isSelectable)
        #expect(VaryNames(ResponseHead(200, "Vary: \(long)b")).exceedsLimits)
        #expect(VaryNames(ResponseHead(200, "Vary: \(long)b, *")).isWildcard)
    }

    private static let imageTable: [([String], [String])] = [
        ([], []), (["Vary: Accept"], ["accept"]), (["Vary: accept"], ["accept"]),
        (["Vary: Accept-Encoding"], ["accept-encoding"]),
        (["Vary: ACCEPT-ENCODING , accept"], ["accept", "accept-encoding"]),
        (["Vary: Accept", "Vary: Accept-Encoding"], ["accept", "accept-encoding"]),
        (["Vary: ,,Accept,"], ["accept"]), (["Vary: Cookie, Origin"], []),
        (["Vary: Accept-Language"], []), (["Vary: Accept-"], []), (["Vary: Accept Cookie"], []),
        (["Vary: "], []), (["Vary: \((0..<40).map { "x\($0), " }.joined())Accept"], ["accept"]),
        (["Content-Encoding: gzip"], ["accept-encoding"]),
        (["Content-Encoding: br", "Vary: Accept"], ["accept", "accept-encoding"]),
        (["Content-Encoding: identity"], []),
    ]

    @Test("Only the two negotiation fields of images vary an image", arguments: imageTable)
    func image(fields: [String], expected: [String]) {
        let head = ResponseHead(status: 200, fields: ["Content-Type: image/png"] + fields)
        let vary = VaryNames(image: head.lines, in: head.bytes.span)
        #expect(vary.names.names.map(\.text) == expected && vary.isSelectable)
        let stored = StoredHead(head.imageResponse, size: 3).bytes
        #expect(VaryNames(image: StoredHead.lines(stored), in: stored.span).names == vary.names)
    }

    @Test("A star makes an image unusable for other requests, too")
    func imageForNobody() {
        let head = ResponseHead(200, "Vary: Accept, *")
        #expect(VaryNames(image: head.lines, in: head.bytes.span).isWildcard)
    }

    @Test("Lines of other fields are ignored")
    func others() {
        let head = ResponseHead(200, "X-Vary: a", "Content-Encoding: gzip", "vary: b", "Variant: c")
        #expect(VaryNames(head).names.names.map(\.text) == ["b"])
    }

    @Test("A stored response nominates the same fields as at its arrival", arguments: table)
    func rendered(lines: [String], expected: [String]) {
        let fields = ["Age: 1"] + lines.map { "Vary: \($0)" } + ["X-Vary: other"]
        let stored = StoredHead(site: fields, size: 5)
        let vary = VaryNames(renderedHead: stored.bytes)
        #expect(vary.names.names.map(\.text) == expected && vary.isSelectable)
        #expect(vary == VaryNames(ResponseHead(status: 200, fields: fields)))
    }

    @Test("A stored variant index nominates nothing")
    func renderedIndex() {
        for text in ["", "HTTP", "Vary: a\r\n\r\n", "Http/1.1 200\r\nVary: a\r\n\r\n"] {
            #expect(VaryNames(renderedHead: text.bytes) == VaryNames())
        }
    }
}
