import Ground
import HTTPRules
import Tiers

extension DiskRecord {
    /// Why no answer can be made of it, whatever its checksum says; nil if one can.
    var responseDefect: String? {
        guard !flags.contains(.isVariantIndex) else {
            return isVariantIndex ? nil : "\(StoredHeadFault.metadata)"
        }
        let head = StoredHead(
            rendered: head, partialStart: Int(layout.partialStart),
            multipartStart: Int(layout.multipartStart),
            notModifiedStart: Int(layout.notModifiedStart),
            contentType: layout.contentType, entityTag: layout.entityTag)
        do throws(StoredHeadFault) {
            try head.validate(flags, size: bodyBytes)
            return nil
        } catch {
            return "\(error)"
        }
    }

    /// It says which fields of a request select an answer, and is nothing else.
    private var isVariantIndex: Bool {
        flags == .isVariantIndex && bodyBytes == 0
            && VariantIndex(head.span, at: head.indices) != nil
    }
}
