import Cluster
import Foundation
import Ground
import Testing

@Suite("The page on the peer protocol")
struct PeerProtocolPageTests {
    /// The page's vectors in order: the bytes of the code block under each heading, with its name.
    private func vectors() throws -> [(name: String, bytes: [UInt8])] {
        let part = try DoccPage.text("PeerProtocol.md", behind: "Test vectors")
        return part.components(separatedBy: "\n### ").dropFirst().map { section in
            let lines = section.split(separator: "\n")
            return (String(lines[0]), DoccPage.code(section))
        }
    }

    @Test("The page's vectors are encoded and decoded as written, and are complete")
    func samples() throws {
        let vectors = try vectors()
        #expect(vectors.map(\.name) == PeerSamples.all.map(\.name) + ["DATA"])
        for (vector, sample) in zip(vectors, PeerSamples.all) {
            #expect(try sample.frame.bytes(stream: sample.stream) == vector.bytes, "\(sample.name)")
            #expect(try PeerFrameHeader(vector.bytes.span).stream == sample.stream)
            #expect(try PeerFrame.read(vector.bytes) == sample.frame, "\(sample.name)")
        }
    }

    @Test("The vector of DATA is a header and the body's bytes")
    func data() throws {
        let vector = try #require(try vectors().last)
        let head = PeerFrameHeader(.data, stream: 7, payloadBytes: 4).bytes
        let expected = head.indices.map { head[$0] } + Array("jay\n".utf8)
        #expect(vector.bytes == expected)
    }
}
