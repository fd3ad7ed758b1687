import Foundation
import Harness

/// A folder of generated images, to be served by a web server.
final class ImageFolder: Sendable {
    let path: String
    let images: [TestImage]
    private let folder: TemporaryFolder

    /// Writes `count` images of 200 B to about 100 KB, most of them small.
    init(count: Int) throws {
        folder = try TemporaryFolder()
        path = folder.path
        let kinds: [TestImage.Kind] = [.jpeg, .png, .gif]
        images = (0..<count).map { number in
            // Sizes repeat only after thousands of images, and one in fifty is large.
            let size = number % 50 == 0 ? 20_000 + number % 83 * 1_000 : 200 + number * 37 % 9_000
            return TestImage.generated(
                kinds[number % kinds.count], byteCount: size, seed: UInt64(number))
        }
        for image in images {
            try Data(image.bytes).write(to: folder.appending(path: Self.name(of: image)))
        }
    }

    /// Returns a file name whose extension gives the server the type.
    static func name(of image: TestImage) -> String {
        let type = image.contentType.split(separator: "/").last.map(String.init) ?? ""
        return "\(image.name).\(type == "jpeg" ? "jpg" : type)"
    }
}
