import Cluster
import Foundation
import Ground
import Testing

@Suite("The page on the peer protocol")
struct PeerProtocolPageTests {
    /// The vectors of the page, by name, in its order: the bytes of the code block under each
    /// heading.
    private func vectors() throws -> [(name: String, bytes: [UInt8])] {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..")
        let page = try String(
            contentsOf: root.appending(path: "Sources/Cluster/Cluster.docc/PeerProtocol.md"),
            encoding: .utf8)
        let part = try #require(page.components(separatedBy: "\n## Test vectors\n").last)
        return part.components(separatedBy: "\n### ").dropFirst().map { section in
            let lines = section.split(separator: "\n")
            let digits = lines.dropFirst().filter { $0.hasPrefix("    ") }.joined()
                .filter { $0 != " " }.utf8.compactMap(ASCII.hexValue)
            let bytes = stride(from: 0, to: digits.count - 1, by: 2).map {
                digits[$0] << 4 | digits[$0 + 1]
            }
            return (String(lines[0]), bytes)
        }
    }

    @Test("the vectors are written and read as the page has them, and there are no others")
    func samples() throws {
        let vectors = try vectors()
        #expect(vectors.map(\.name) == PeerSamples.all.map(\.name) + ["DATA"])
        for (vector, sample) in zip(vectors, PeerSamples.all) {
            let written = try sample.frame.bytes(stream: sample.stream)
            #expect(written == vector.bytes, "\(sample.name)")
            let head = try PeerFrameHead(vector.bytes.span)
            #expect(head.stream == sample.stream)
            let read = try PeerFrame.read(vector.bytes)
            #expect(read == sample.frame, "\(sample.name)")
        }
    }

    @Test("the vector of DATA is a head and the body's bytes")
    func data() throws {
        let vector = try #require(try vectors().last)
        let head = PeerFrameHead(.data, stream: 7, payloadBytes: 4).bytes
        let expected = head.indices.map { head[$0] } + Array("jay\n".utf8)
        #expect(vector.bytes == expected)
    }
}
