import NIOCore
import Origin
import Testing
import Wire

@Suite("Reading a response in pieces")
struct ResponseReaderTests {
    static let answers: [(String, body: String)] = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n"
                + "0\r\nTrailer: z\r\n\r\n", "hello"
        ),
        (
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100\r\n\r\n"
                + "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "x"
        ),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", ""),
    ]

    @Test(
        "A response ends where its framing says, however the bytes are split",
        arguments: [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello\r\n", "hello", 2),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP", "", 4),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nHTTP",
                "hello", 4
            ),
            ("HTTP/1.1 304 Not Modified\r\n\r\nmore", "", 4),
            ("HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nmore", "", 4),
            ("HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", 5),
        ])
    func overrun(response: String, body: String, behind: Int) {
        let bytes = Array(response.utf8)
        for cut in 0...bytes.count - behind {
            var reader = ResponseReader(settings: OriginSettings())
            var first = ByteBuffer(bytes: bytes[..<cut])
            var steps: [ResponseEvent] = []
            while steps.last != .needsMore, steps.last != .end { steps.append(reader.next(&first)) }
            var rest = ByteBuffer(bytes: bytes[cut...])
            while steps.last != .end, steps.count < 20 { steps.append(reader.next(&rest)) }
            let read = steps.reduce(into: "") { read, step in
                if case .body(let piece) = step { read += String(buffer: piece) }
            }
            #expect(read == body && steps.last == .end, "cut at \(cut): \(steps)")
            #expect(rest.readableBytes == behind, "cut at \(cut)")
        }
    }

    @Test("A response reads the same wherever it is split", arguments: answers)
    func cut(response: String, body: String) {
        let bytes = Array(response.utf8)
        for cut in 0...bytes.count {
            var reader = ResponseReader(settings: OriginSettings())
            var heads = 0
            var read = ""
            var isWhole = false
            for part in [bytes[..<cut], bytes[cut...]] {
                var buffer = ByteBuffer(bytes: part)
                reading: while !isWhole {
                    switch reader.next(&buffer) {
                    case .needsMore:
                        #expect(buffer.readableBytes == 0)
                        break reading
                    case .interim: break
                    case .trailers: Issue.record("unexpected trailers")
                    case .head: heads += 1
                    case .body(let piece): read += String(buffer: piece)
                    case .end: isWhole = true
                    case .refused(let failure):
                        Issue.record("\(failure) when cut at \(cut)")
                        return
                    }
                }
            }
            #expect(heads == 1 && isWhole && read == body, "cut at \(cut)")
        }
    }

    @Test("Requested trailers come before the end, wherever the response is split")
    func trailers() throws {
        let section = "Sum: \u{E9}\r\nX:\r\n"
        let response =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\(section)\r\n"
        let wanted = try #require(Trailers(Array(section.utf8)))
        let bytes = Array(response.utf8)
        for cut in 0...bytes.count {
            var reader = ResponseReader(settings: OriginSettings())
            reader.requestSent(keepsTrailers: true)
            var steps: [ResponseEvent] = []
            for part in [bytes[..<cut], bytes[cut...]] {
                var buffer = ByteBuffer(bytes: part)
                while steps.last != .end {
                    steps.append(reader.next(&buffer))
                    if steps.last == .needsMore { break }
                }
            }
            #expect(steps.suffix(2) == [.trailers(wanted), .end], "cut at \(cut)")
        }
    }

    @Test("The response to HEAD ends with its head, and later bytes are left")
    func head() {
        var reader = ResponseReader(settings: OriginSettings())
        reader.requestSent(isHead: true)
        var buffer = ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        guard case .head(let head) = reader.next(&buffer) else {
            Issue.record("no head")
            return
        }
        #expect(head.framing == .none)
        #expect(reader.next(&buffer) == .end)
        #expect(buffer.readableBytes == 5)
    }

    @Test("A piece holds at most twice its size, and is not copied if it fills its buffer")
    func memory() {
        var reader = ResponseReader(settings: OriginSettings())
        var head = ByteBuffer(string: "HTTP/1.1 200 OK\r\n\r\n")
        while case .head = reader.next(&head) {}
        for (count, isCopied) in [(1, true), (30_000, true), (32_768, false), (65_536, false)] {
            var read = ByteBufferAllocator().buffer(capacity: 65_536)
            read.writeRepeatingByte(7, count: count)
            guard case .body(let piece) = reader.next(&read) else {
                Issue.record("no body in \(count) bytes")
                return
            }
            #expect(piece.readableBytes == count)
            #expect(piece.storageCapacity <= 2 * count)
            #expect((piece.storageCapacity < 65_536) == isCopied)
        }
    }
}
