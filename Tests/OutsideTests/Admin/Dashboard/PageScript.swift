import Foundation
import Testing

/// JavaScript expressions that examine the whole page, from the files of the same names in `Looks`.
enum PageScript: String {
    /// Lists elements that overflow or are cut off.
    case overflow
    /// Lists texts with insufficient contrast.
    case contrast
    /// Numbers the controls and counts them.
    case controls
    /// Returns the focused control and its focus problems.
    case focus

    func text() throws -> String {
        let folder = try #require(Bundle.module.resourceURL?.appending(path: "Looks"))
        return try String(contentsOf: folder.appending(path: "\(rawValue).js"), encoding: .utf8)
    }
}
