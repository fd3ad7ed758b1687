import Foundation

/// Images for tests: real ones if the shared folder is available, generated ones always.
package enum ImageCorpus {
    /// The complete real images of the shared folder; empty if the folder is missing.
    package static let real = images(in: "whole")

    /// The broken images of the shared folder; empty if the folder is missing.
    package static let broken = images(in: "broken")

    private static func images(in part: String) -> [TestImage] {
        guard let folder = sharedFolder else { return [] }
        return manifest(of: folder, part).compactMap { line in
            guard let data = FileManager.default.contents(atPath: "\(folder)/\(line.file)") else {
                return nil
            }
            let name = line.file.dropFirst(part.count + 1).map { $0 == "+" ? "-" : $0 }
            return TestImage(
                name: String(name), contentType: line.contentType, bytes: Array(data))
        }
    }

    /// Sizes in bytes around the boundaries of buffers and chunks, 200 B to 20 MB.
    package static let sizes = [
        200, 1_023, 4_096, 10_000, 16_384, 65_535, 65_536, 65_537, 131_072, 300_000, 1_048_577,
        5_000_000, 20_000_000,
    ]

    /// Generated images: one small image of each type, and every size with alternating types.
    package static let generated: [TestImage] = {
        let kinds = TestImage.Kind.allCases
        let small = kinds.enumerated().map { index, kind in
            TestImage.generated(kind, byteCount: 2_000 + index, seed: UInt64(index))
        }
        let sized = sizes.enumerated().map { index, size in
            TestImage.generated(
                kinds[index % kinds.count], byteCount: size, seed: UInt64(100 + index))
        }
        return small + sized
    }()

    /// All real and generated images.
    package static let all: [TestImage] = real + generated

    /// The `images` folder beside the repository, or one level further up for a work tree.
    private static var sharedFolder: String? {
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let candidates = ["../shared/images", "../../shared/images"]
        return candidates.map { root.appendingPathComponent($0).standardizedFileURL.path }
            .first { FileManager.default.fileExists(atPath: "\($0)/whole") }
    }

    /// Returns the lines of `manifest.csv` (file, bytes, type, …) for the images of one part.
    private static func manifest(
        of folder: String, _ part: String
    ) -> [(file: String, contentType: String)] {
        guard let data = FileManager.default.contents(atPath: "\(folder)/manifest.csv") else {
            return []
        }
        let lines = String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline)
        return lines.compactMap { line in
            let columns = line.split(separator: ",", omittingEmptySubsequences: false)
            guard columns.count >= 3, columns[0].hasPrefix(part + "/") else { return nil }
            return (file: String(columns[0]), contentType: String(columns[2]))
        }
    }
}
