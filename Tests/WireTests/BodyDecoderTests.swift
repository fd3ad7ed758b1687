import Ground
import HTTPRules
import Testing
import Wire

@Suite struct BodyDecoderTests {
    /// The data of a chunked body in one piece, and its error or `nil`.
    private func chunked(
        _ text: String, limits: BodyLimits = BodyLimits()
    ) -> (data: [UInt8], refusal: BodyDecodingError?, rest: Int?) {
        let bytes = latin1(text)
        var decoder = BodyDecoder(.chunked, limits: limits)
        var data: [UInt8] = []
        var position = 0
        for _ in 0...bytes.count {
            switch decoder.next(bytes.span, from: position) {
            case .data(let extent, let next):
                data += bytes.span.copy(extent.range)
                position = next
            case .needsMore: return (data, nil, nil)
            case .end(let next): return (data, nil, bytes.count - next)
            case .refused(let refusal): return (data, refusal, nil)
            }
        }
        Issue.record("does not end")
        return (data, nil, nil)
    }

    @Test(
        "Chunks are joined, extensions and trailers dropped",
        arguments: [
            ("0\r\n\r\n", ""), ("1\r\na\r\n0\r\n\r\n", "a"), ("0003\r\nabc\r\n00\r\n\r\n", "abc"),
            ("a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789"),
            ("1;a\r\nx\r\n0;b=c;d=\"e;\\\"\r\u{E9}\"\r\n\r\n", nil),
            ("1;a\r\nx\r\n0;b=c;d=\"e;\\\" \u{E9}\"\r\n\r\n", "x"),
            ("1\r\nx\r\n0\r\nA: b\r\nX-Y:\t\u{E9}\r\nEmpty:\r\n\r\n", "x"),
        ])
    func reads(_ text: String, _ data: String?) {
        let result = chunked(text + "rest")
        guard let data else {
            #expect(result.refusal != nil)
            return
        }
        #expect(result.data == latin1(data))
        #expect(result.rest == 4)
    }

    @Test(
        "A malformed chunk is refused",
        arguments: [
            ("\r\n", BodyDecodingError.malformedChunkSize), ("g\r\n", .malformedChunkSize),
            ("-1\r\n", .malformedChunkSize), ("+1\r\n", .malformedChunkSize),
            ("0x1\r\n", .malformedChunkSize), (" 1\r\n", .malformedChunkSize),
            ("1 \r\n", .malformedChunkSize), ("1\t\r\n", .malformedChunkSize),
            ("1 ;a\r\n", .malformedChunkSize), (";a\r\n", .malformedChunkSize),
            ("1\u{0}\r\n", .malformedChunkSize), ("1.0\r\n", .malformedChunkSize),
            ("\u{E9}\r\n", .malformedChunkSize),
            ("10000000000000000\r\n", .chunkTooLarge), ("00000000000000001\r\n", .chunkTooLarge),
            ("1\n", .lineEnd), ("1\ra\r\n", .lineEnd), ("1;a\n", .lineEnd), ("1;a=b\rx", .lineEnd),
            ("1\r\nab\r\n", .lineEnd), ("1\r\na\n", .lineEnd), ("1\r\na\rx", .lineEnd),
            ("1\r\na0\r\n\r\n", .lineEnd),
            ("1;\r\n", .malformedExtension), ("1; a\r\n", .malformedExtension),
            ("1;a \r\n", .malformedExtension), ("1;a=\r\n", .malformedExtension),
            ("1;a=b c\r\n", .malformedExtension), ("1;a=\"b\"c\r\n", .malformedExtension),
            ("1;a=\"\n\"\r\n", .malformedExtension), ("1;;a\r\n", .malformedExtension),
            ("1;\u{E9}\r\n", .malformedExtension),
            ("0\r\n\n", .trailer(.invalidNameToken)), ("0\r\n\rx", .trailer(.bareCarriageReturn)),
            ("0\r\nA\r\n\r\n", .trailer(.invalidNameToken)),
            ("0\r\nA : b\r\n\r\n", .trailer(.spaceBeforeColon)),
            ("0\r\n: b\r\n\r\n", .trailer(.emptyName)),
            ("0\r\nA: b\r\n c\r\n\r\n", .trailer(.leadingSpace)),
            ("0\r\nA: b\n\r\n", .trailer(.bareLineFeed)),
            ("0\r\nA: b\rc\r\n", .trailer(.bareCarriageReturn)),
            ("0\r\nA: \0\r\n\r\n", .trailer(.controlByte(0))),
            ("0\r\nContent-Length: 1\r\n\r\n", .forbiddenTrailer),
            ("0\r\nTRANSFER-ENCODING: x\r\n\r\n", .forbiddenTrailer),
            ("0\r\nHost: a\r\n\r\n", .forbiddenTrailer),
        ])
    func refuses(_ text: String, _ refusal: BodyDecodingError) {
        #expect(chunked(text).refusal == refusal)
        #expect(refusal.status == 400)
        #expect(refusal.message.hasSuffix("."))
    }

    @Test("The extensions of all chunks together, and the trailer section, are limited")
    func limits() {
        let limits = BodyLimits(extensionBytesMax: 6, trailerBytesMax: 10)
        #expect(chunked("1;a\r\nx\r\n1;b\r\ny\r\n0;c\r\n\r\n", limits: limits).rest == 0)
        #expect(
            chunked("1;a\r\nx\r\n1;b\r\ny\r\n0;cd\r\n\r\n", limits: limits).refusal
                == .extensionsTooLong(bytesMax: 6))
        #expect(chunked("0\r\nA: bcd\r\n\r\n", limits: limits).rest == 0)
        #expect(
            chunked("0\r\nA: bcde\r\n\r\n", limits: limits).refusal
                == .trailersTooLong(bytesMax: 10))
    }

    @Test("Trailers are kept on request, unchanged and in order")
    func trailers() {
        let section = "A: b\r\nX-Y:\t\u{E9} \r\na:\r\n"
        let bytes = latin1("1\r\nx\r\n0\r\n\(section)\r\nrest")
        for cut in 0...bytes.count {
            var decoder = BodyDecoder(.chunked, keepsTrailers: true)
            var dropping = BodyDecoder(.chunked)
            for range in [0..<cut, cut..<bytes.count] {
                let span = bytes.span.extracting(range)
                for position in 0..<span.count where !decoder.isAtEnd {
                    let one = span.extracting(position..<position + 1)
                    _ = decoder.next(one, from: 0)
                    _ = dropping.next(one, from: 0)
                }
            }
            #expect(decoder.isAtEnd && dropping.isAtEnd)
            let trailers = decoder.trailers
            #expect(trailers.bytes == latin1(section))
            #expect(trailers.lines.map { trailers.text($0.name) } == ["A", "X-Y", "a"])
            #expect(trailers.lines.map { trailers.text($0.value) } == ["b", "\u{E9}", ""])
            #expect(dropping.trailers.isEmpty)
        }
    }

    @Test("There are no trailers before the end, nor in an empty section")
    func noTrailers() {
        var decoder = BodyDecoder(.chunked, keepsTrailers: true)
        let first = latin1("0\r\nA: b\r\n")
        #expect(decoder.next(first.span, from: 0) == .needsMore)
        #expect(decoder.trailers == Trailers())
        let last = latin1("\r\n")
        #expect(decoder.next(last.span, from: 0) == .end(next: 2))
        #expect(decoder.trailers.lines.count == 1)
        var empty = BodyDecoder(.chunked, keepsTrailers: true)
        let whole = latin1("0\r\n\r\n")
        #expect(empty.next(whole.span, from: 0) == .end(next: 5))
        #expect(empty.trailers == Trailers())
    }

    @Test(
        "A malformed trailer section is refused",
        arguments: [
            "A", "A: b", "A: b\n", " A: b\r\n", ": b\r\n", "A: b\r\n\r\n", "A : b\r\n",
            "HOST: a\r\n", "Content-length: 1\r\n", "A: b\r\nTransfer-Encoding: x\r\n",
        ])
    func noSection(_ text: String) {
        #expect(Trailers(latin1(text)) == nil)
    }

    @Test("The largest chunk size is accepted")
    func largest() {
        #expect(chunked("FFFFFFFFFFFFFFFF\r\nabc").data == latin1("abc"))
    }

    @Test("A body with a length ends after exactly that many bytes")
    func length() {
        var decoder = BodyDecoder(.length(5))
        let first = latin1("abc").span
        #expect(decoder.next(first, from: 0) == .data(Extent(start: 0, count: 3), next: 3))
        #expect(decoder.next(first, from: 3) == .needsMore)
        #expect(!decoder.isAtEnd)
        let second = latin1("-defgh").span
        #expect(decoder.next(second, from: 1) == .data(Extent(start: 1, count: 2), next: 3))
        #expect(decoder.isAtEnd)
        #expect(decoder.next(second, from: 3) == .end(next: 3))
    }

    @Test("An empty body ends at once", arguments: [BodyFraming.none, .length(0)])
    func none(_ framing: BodyFraming) {
        var decoder = BodyDecoder(framing)
        #expect(decoder.isAtEnd)
        #expect(decoder.next(latin1("abc").span, from: 1) == .end(next: 1))
    }

    @Test("The framing of a forwarded request is that of the one received")
    func requestBody() {
        let framings: [BodyFraming] = [.none, .length(0), .length(.max), .chunked, .untilClose]
        let lines = framings.map { framing -> String? in
            guard let body = RequestBodyFraming(framing) else { return nil }
            var bytes: [UInt8] = []
            body.appendField(to: &bytes)
            return String(decoding: bytes, as: UTF8.self)
        }
        #expect(
            lines == [
                "", "Content-Length: 0\r\n", "Content-Length: 18446744073709551615\r\n",
                "Transfer-Encoding: chunked\r\n", nil,
            ])
        #expect(
            framings.map { RequestBodyFraming($0)?.isEmpty } == [true, true, false, false, nil])
    }

    @Test("A refused body stays refused")
    func refusedForEver() {
        var decoder = BodyDecoder(.chunked)
        let bytes = latin1("x0\r\n\r\n")
        #expect(decoder.next(bytes.span, from: 0) == .refused(.malformedChunkSize))
        #expect(decoder.next(bytes.span, from: 1) == .refused(.malformedChunkSize))
    }
}

extension Trailers {
    fileprivate func text(_ extent: Extent) -> String {
        String(String.UnicodeScalarView(bytes[extent.range].map { Unicode.Scalar($0) }))
    }
}
