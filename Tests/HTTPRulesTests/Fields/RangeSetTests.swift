import Ground
import HTTPRules
import Testing
import Trials

private func range(_ first: UInt64, _ last: UInt64) -> ByteRange {
    ByteRange(first: first, last: last)
}

@Suite struct RangeSetTests {
    private func parse(_ value: String, size: UInt64, countMax: Int = 16) -> RangeSet {
        let bytes = ("x" + value + "x").bytes
        return RangeSet.parse(
            bytes.span, at: 1..<bytes.count - 1, size: size, countMax: countMax)
    }

    private static let oneTable: [(String, UInt64, RangeSet)] = [
        ("bytes=0-499", 10_000, .single(range(0, 499))),
        ("bytes=500-999", 10_000, .single(range(500, 999))),
        ("bytes=-500", 10_000, .single(range(9500, 9999))),
        ("bytes=9500-", 10_000, .single(range(9500, 9999))),
        ("bytes=0-0", 10, .single(range(0, 0))), ("bytes=9-9", 10, .single(range(9, 9))),
        ("bytes=0-", 10, .single(range(0, 9))), ("bytes=0-9", 10, .single(range(0, 9))),
        ("bytes=0-10", 10, .single(range(0, 9))),
        ("bytes=5-99999999999999999999999", 10, .single(range(5, 9))),
        ("bytes=-99999999999999999999999", 10, .single(range(0, 9))),
        ("bytes=-1", 10, .single(range(9, 9))),
        ("bytes=-10", 10, .single(range(0, 9))), ("bytes=-11", 10, .single(range(0, 9))),
        ("BYTES=1-2", 10, .single(range(1, 2))), ("bytes=, 1-2 ,", 10, .single(range(1, 2))),
        ("bytes=001-002", 10, .single(range(1, 2))),
        ("bytes=0-18446744073709551615", 10, .single(range(0, 9))),
    ]

    @Test(
        "A request for less than the whole is recognised without the size",
        arguments: [
            ("bytes=0-0", true), ("bytes=5-", true), ("bytes=-1", true), ("bytes=0-0,5-5", true),
            ("bytes=-0", true), ("bytes=0-", false), ("bytes=0-,0-", false),
            ("bytes=5-2", false), ("lines=0-0", false), ("bytes=", false), ("bytes=1,2", false),
        ])
    func isPart(value: String, expected: Bool) {
        #expect(isPart(ResponseHead(200, "A: b", "Range: " + value)) == expected)
        #expect(!isPart(ResponseHead(200, "Range: " + value, "Range: " + value)))
    }

    @Test("More ranges than the limit count as the whole")
    func tooManyParts() {
        let head = ResponseHead(200, "Range: bytes=0-0,2-2,4-4")
        #expect(isPart(head, countMax: 3))
        #expect(!isPart(head, countMax: 2))
    }

    /// The result for the lines of a head used as a request's.
    private func isPart(_ head: ResponseHead, countMax: Int = 16) -> Bool {
        let bytes = head.bytes
        return RangeSet.requestsPart(head.lines, in: bytes.span, countMax: countMax)
    }

    @Test(
        "RFC 9110 §14.4: the complete length in Content-Range",
        arguments: [
            ("bytes 0-3/10", 10), ("bytes */10", 10), ("BYTES 0-3/10", 10), ("bytes 0-3/*", nil),
            ("bytes 0-3", nil), ("bytes 0-3/", nil), ("lines 0-3/10", nil), ("bytes 0-3/1x", nil),
            ("", nil),
        ] as [(String, UInt64?)])
    func completeLength(value: String, expected: UInt64?) {
        #expect(ResponseHead(206, "Content-Range: " + value).completeLength == expected)
    }

    @Test("RFC 9110 §14.1.2: a single byte range", arguments: oneTable)
    func one(value: String, size: UInt64, expected: RangeSet) {
        #expect(parse(value, size: size) == expected)
    }

    @Test(
        "RFC 9110 §14.2: a malformed range set is ignored",
        arguments: [
            "", "bytes", "bytes=", "bytes=-", "bytes=,", "bytes=a-b", "bytes=1", "bytes=2-1",
            "bytes=1-2-3", "bytes=--1", "bytes=-1-", "bytes=1 -2", "bytes=1- 2", "bytes =1-2",
            "bytes:1-2", "items=1-2", "bytes=+1-2", "bytes=0x1-2", "bytes=1.5-2", "bytes=1-2;x",
            "bytes=1-2,x", "bytes=1-2,4-3", "bytes=5-,-", "byte=1-2", "bytess=1-2", "=1-2", "1-2",
        ])
    func ignored(value: String) {
        #expect(parse(value, size: 10) == .whole)
    }

    @Test(
        "RFC 9110 §14.1.2 and §15.5.17: ranges outside the body are not satisfiable",
        arguments: [
            ("bytes=10-", 10), ("bytes=10-20", 10), ("bytes=-0", 10), ("bytes=11-,12-,-0", 10),
            ("bytes=99999999999999999999-", 10),
            ("bytes=18446744073709551615-18446744073709551615", 18_446_744_073_709_551_615),
        ] as [(String, UInt64)])
    func unsatisfiable(value: String, size: UInt64) {
        #expect(parse(value, size: size) == .unsatisfiable)
    }

    @Test(
        "An empty body has no parts: any range gives the whole",
        arguments: ["bytes=0-", "bytes=0-0", "bytes=-0", "bytes=-5", "bytes=7-9", "bytes=0-1,2-"])
    func empty(value: String) {
        #expect(parse(value, size: 0) == .whole)
    }

    private static let severalTable: [(String, RangeSet)] = [
        ("bytes=0-0,-1", .multiple([range(0, 0), range(99, 99)])),
        ("bytes=-1,0-0", .multiple([range(99, 99), range(0, 0)])),
        ("bytes=50-59,10-19,30-39", .multiple([range(50, 59), range(10, 19), range(30, 39)])),
        ("bytes=0-9,200-", .single(range(0, 9))), ("bytes=200-,0-9", .single(range(0, 9))),
        ("bytes=0-9,5-19", .single(range(0, 19))), ("bytes=5-19,0-9", .single(range(0, 19))),
        ("bytes=0-9,10-19", .single(range(0, 19))),
        ("bytes=0-9,11-19", .multiple([range(0, 9), range(11, 19)])),
        ("bytes=0-,0-,0-", .single(range(0, 99))), ("bytes=0-,5-5", .single(range(0, 99))),
        ("bytes=20-29,0-9,5-15", .multiple([range(0, 15), range(20, 29)])),
        ("bytes=0-9, 0-9 ,20-29", .multiple([range(0, 9), range(20, 29)])),
    ]

    @Test(
        "RFC 9110 §15.3.7.2: several ranges, with overlapping and adjacent ones merged",
        arguments: severalTable)
    func several(value: String, expected: RangeSet) {
        #expect(parse(value, size: 100) == expected)
    }

    @Test("RFC 9110 §14.2: more ranges than the limit give the whole")
    func limit() {
        let many = (0..<16).map { "\($0 * 2)-\($0 * 2)" }.joined(separator: ",")
        guard case .multiple(let ranges) = parse("bytes=" + many, size: 100) else {
            Issue.record("16 ranges are allowed")
            return
        }
        #expect(ranges.count == 16)
        #expect(parse("bytes=\(many),50-50", size: 100) == .whole)
        #expect(parse("bytes=\(many),200-200", size: 100) == .whole)
        #expect(parse("bytes=1-2,4-5", size: 100, countMax: 1) == .whole)
    }

    @Test("RFC 9110 §14.2: no range exceeds the body, and together they are no longer than it")
    func inside() {
        var dice = SplitMix64(seed: 21)
        for _ in 0..<Trials.count(20_000) {
            let size = UInt64.random(in: 0...30, using: &dice)
            let value = "bytes=" + dice.text(of: "0123456789--,, ", upTo: 24)
            switch parse(value, size: size) {
            case .whole, .unsatisfiable: break
            case .single(let one): #expect(one.first <= one.last && one.last < size, "\(value)")
            case .multiple(let ranges):
                #expect(ranges.count > 1)
                #expect(ranges.allSatisfy { $0.first <= $0.last && $0.last < size }, "\(value)")
                #expect(ranges.reduce(0) { $0 + $1.count } < size, "\(value)")
            }
        }
    }

    @Test("RFC 9110 §14.4: Content-Range")
    func contentRange() {
        var bytes: [UInt8] = []
        range(0, 499).appendContentRange(size: 1234, to: &bytes)
        #expect(bytes.text == "bytes 0-499/1234")
    }

    @Test("RFC 9110 §14.6: a multipart body and its length")
    func multipart() {
        let parts = MultipartRanges(
            ranges: [range(0, 1), range(7, 9)], size: 10, contentType: "image/png".bytes,
            boundary: 0xAB_CDEF)
        var type: [UInt8] = []
        parts.appendContentType(to: &type)
        #expect(type.text == "multipart/byteranges; boundary=nuthatch-0000000000abcdef")
        var body: [UInt8] = []
        parts.appendPartHead(0, to: &body)
        body += "01".bytes
        parts.appendPartHead(1, to: &body)
        body += "789".bytes
        parts.appendTail(to: &body)
        #expect(
            body.text == """
                --nuthatch-0000000000abcdef\r
                content-type: image/png\r
                content-range: bytes 0-1/10\r
                \r
                01\r
                --nuthatch-0000000000abcdef\r
                content-type: image/png\r
                content-range: bytes 7-9/10\r
                \r
                789\r
                --nuthatch-0000000000abcdef--\r

                """)
        #expect(parts.contentLength == UInt64(body.count))
    }

    @Test("RFC 9110 §14.6: parts of a body without a type have none")
    func untyped() {
        let parts = MultipartRanges(
            ranges: [range(0, 1), range(7, 9)], size: 10, contentType: [], boundary: .max)
        var head: [UInt8] = []
        parts.appendPartHead(0, to: &head)
        #expect(head.text == "--nuthatch-ffffffffffffffff\r\ncontent-range: bytes 0-1/10\r\n\r\n")
    }
}
