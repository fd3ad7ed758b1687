import Testing
import Tiers

/// The memory that the chunks of a body take.
@Suite struct BodyLayoutTests {
    @Test("Full chunks count as they are, the tail as the powers of two that it is divided into")
    func capacity() {
        #expect(BodyLayout.capacity(0) == 0)
        #expect(BodyLayout.capacity(1) == BodyLayout.pieceBytesMin)
        #expect(BodyLayout.capacity(65_536) == 65_536)
        #expect(BodyLayout.capacity(65_537) == 65_536 + BodyLayout.pieceBytesMin)
    }

    @Test(
        "The capacity of an impossible length is capped without overflow",
        arguments: [
            UInt64.max, .max - 1, 1 << 63, (1 << 63) - 1, (1 << 62) + 1,
            BodyLayout.bodyBytesMax + 1,
        ] as [UInt64])
    func beyondMemory(bodyBytes: UInt64) {
        let capacity = BodyLayout.capacity(bodyBytes)
        #expect(capacity == Int(BodyLayout.bodyBytesMax))
        #expect(!capacity.addingReportingOverflow(Int(UInt32.max)).overflow)
    }
}
