package workspace

import (
	"net/http"
	"path"
	"strings"
)

// mimeByEnding are the types that a person's browser is told, by the ending of the name. They are fixed here, so that they do
// not change with the machine that a worker runs on.
var mimeByEnding = map[string]string{
	".txt": "text/plain", ".md": "text/markdown", ".csv": "text/csv", ".tsv": "text/tab-separated-values", ".html": "text/html",
	".htm": "text/html", ".css": "text/css", ".js": "text/javascript", ".mjs": "text/javascript", ".json": "application/json",
	".xml": "application/xml", ".yaml": "application/yaml", ".yml": "application/yaml", ".py": "text/x-python", ".svg": "image/svg+xml",
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".bmp": "image/bmp",
	".tif": "image/tiff", ".tiff": "image/tiff", ".pdf": "application/pdf", ".zip": "application/zip", ".gz": "application/gzip",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}

// MIMEType is what a file is served as, from its name or, where that says nothing, its first bytes.
func MIMEType(name string, content []byte) string {
	t, known := mimeByEnding[strings.ToLower(path.Ext(name))]
	if !known {
		t, _, _ = strings.Cut(http.DetectContentType(content[:min(len(content), 512)]), ";")
	}
	return t
}
