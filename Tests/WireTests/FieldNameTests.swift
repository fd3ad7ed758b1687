import Ground
import HTTPRules
import Testing
import Wire

@Suite struct FieldNameTests {
    @Test(
        "Each known name is found in any case, and no other name is", arguments: FieldName.allCases)
    func lookup(_ name: FieldName) {
        guard name != .other else { return }
        let text = name.text.description
        for bytes in [latin1(text), latin1(text.uppercased())] {
            #expect(FieldName(bytes.span, at: 0..<bytes.count) == name)
            for index in bytes.indices {
                for other: UInt8 in [0x2D, 0x61, 0x7A, 0x0D, 0x00, 0xE1] {
                    var changed = bytes
                    changed[index] = other
                    guard
                        latin1(String(decoding: changed, as: UTF8.self).lowercased())
                            != latin1(text)
                    else { continue }
                    #expect(FieldName(changed.span, at: 0..<changed.count) != name)
                }
                let shorter = bytes.span.copy(0..<index)
                #expect(FieldName(shorter.span, at: 0..<index) != name)
            }
            let longer = bytes + [0x61]
            #expect(FieldName(longer.span, at: 0..<longer.count) == .other)
        }
    }

    @Test("The set of present names is that of the lines", arguments: FieldName.allCases)
    func present(_ name: FieldName) {
        let text = name == .other ? "X-1" : name.text.description
        // Each name comes alone apart from Host: a coding is refused with HTTP/1.0 and with a
        // length.
        let value = name == .transferEncoding ? "chunked" : name == .expect ? "100-continue" : "1"
        let bytes = latin1(
            name == .host
                ? "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
                : "GET / HTTP/1.1\r\nHost: a\r\n\(text): \(value)\r\n\r\n")
        var parser = RequestParser()
        let result = parser.parse(bytes.span, from: 0)
        #expect(result == .head(end: bytes.count))
        for other in FieldName.allCases {
            let occurs = other == name || other == .host
            #expect(parser.fields.present.contains(other) == occurs)
            #expect(parser.fields.contains(other) == occurs)
            #expect((parser.fields.first(other) != nil) == occurs)
        }
    }

    @Test("The parser finds the same names as a look-up by bytes", arguments: FieldName.allCases)
    func parser(_ name: FieldName) {
        let text = name == .other ? "X-1" : name.text.description
        for spelt in [text, text.uppercased(), text + "x", text + "_"] {
            let bytes = latin1("HTTP/1.1 304 \r\n\(spelt): 1\r\n\r\n")
            var parser = ResponseParser()
            guard
                case .head(let head, end: _) = parser.parse(
                    bytes.span, from: 0, requestIsHead: false)
            else { continue }
            let line = head.head.lines[0]
            #expect(line.id == FieldName(head.head.bytes.span, at: line.name.range))
        }
    }
}
