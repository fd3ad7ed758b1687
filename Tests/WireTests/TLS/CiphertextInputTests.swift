import NIOCore
import Testing
import Wire

@Suite("The bytes of a TLS connection that are not read yet")
struct CiphertextInputTests {
    /// Reads at most `countMax` bytes.
    private func read(_ input: inout CiphertextInput, _ countMax: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: countMax)
        let count = unsafe bytes.withUnsafeMutableBytes { unsafe input.read(into: $0) }
        return Array(bytes[..<count])
    }

    @Test("Bytes are read in the order of their arrival, whatever the sizes of the buffers")
    func order() {
        var input = CiphertextInput()
        #expect(input.isEmpty)
        for piece: [UInt8] in [[22, 3], [1], [2, 3, 4]] {
            #expect(input.append(ByteBuffer(bytes: piece)) == nil)
        }
        #expect(read(&input, 1) == [22])
        #expect(read(&input, 8) == [3])
        #expect(read(&input, 8) == [1])
        #expect(!input.isEmpty)
        #expect(read(&input, 8) == [2, 3, 4])
        #expect(input.isEmpty)
        #expect(read(&input, 8) == [])
    }

    @Test(
        "A connection that does not begin with a TLS record is told apart by its first two bytes",
        arguments: [
            ([[71, 69]], 71), ([[22], [2]], 2), ([[21, 4]], 4), ([[22], [3, 1]], nil),
            ([[22, 3], [71]], nil),
        ] as [([[UInt8]], UInt8?)])
    func prefix(pieces: [[UInt8]], firstInvalid: UInt8?) {
        var input = CiphertextInput()
        let failures = pieces.compactMap { input.append(ByteBuffer(bytes: $0)) }
        #expect(failures == firstInvalid.map { [.notTLS(firstByte: $0)] } ?? [])
    }

    @Test("Reading stops after the limit of bytes without data, until there is data")
    func limit() {
        let limit = CiphertextInput.bytesWithoutDataMax
        var input = CiphertextInput()
        var buffer = ByteBuffer(bytes: [22, 3])
        buffer.writeRepeatingByte(0, count: limit)
        #expect(input.append(buffer) == nil)
        #expect(read(&input, limit - 1).count == limit - 1)
        #expect(!input.isLimitReached)
        #expect(read(&input, 8).count == 1)
        #expect(input.isLimitReached)
        #expect(read(&input, 8) == [])
        input.dataRead()
        #expect(!input.isLimitReached)
        #expect(read(&input, 8).count == 2)
        #expect(input.isEmpty)
    }
}
