import HTTPRules
import Testing

@Suite struct InterimResponseHeadTests {
    @Test("RFC 9110 §15.2: a valid interim head rendered by another node is forwarded")
    func whole() {
        for head in [
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", "HTTP/1.1 102 \r\n\r\n",
        ] {
            #expect(InterimResponseHead.isWellFormed(head.bytes), "\(head)")
        }
    }

    @Test(
        "Any other interim head is not forwarded",
        arguments: [
            "", "HTTP/1.1 103 \r\n", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\n\r\n", "HTTP/1.0 103 A\r\n\r\n",
            "HTTP/1.1 103 A\r\nLink: </a>\r\n", "HTTP/1.1 103 A\r\nLink\r\n\r\n",
            "HTTP/1.1 103 A\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 103 A\r\nContent-Length: 3\r\n\r\n",
            "HTTP/1.1 103 A\r\nConnection: close\r\n\r\n", "HTTP/1.1 103 A\nX: y\r\n\r\n",
        ])
    func none(head: String) {
        #expect(!InterimResponseHead.isWellFormed(head.bytes))
    }

    @Test("Trailers from another node consist of valid lines only")
    func trailers() {
        #expect(
            RenderedFieldSection.isWellFormed("X-Sum: 1\r\nX: \r\n".bytes)
                && RenderedFieldSection.isWellFormed([]))
        for section in [
            "X-Sum: 1", "X-Sum: 1\r\n\r\n", "Transfer-Encoding: chunked\r\n", "x\r\n",
            "Content-Length: 1\r\n",
        ] {
            #expect(!RenderedFieldSection.isWellFormed(section.bytes), "\(section)")
        }
    }
}
