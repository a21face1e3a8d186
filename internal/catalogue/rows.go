package catalogue

// The names of the tools.
const (
	ListFilesTool    = "list_files"
	SearchFilesTool  = "search_files"
	ReadFileTool     = "read_file"
	WriteFileTool    = "write_file"
	EditFileTool     = "edit_file"
	DeleteFileTool   = "delete_file"
	MoveFileTool     = "move_file"
	RunCodeTool      = "run_code"
	CalculateTool    = "calculate"
	SaveArtifactTool = "save_artifact"
	EditArtifactTool = "edit_artifact"
	LoadSkillTool    = "load_skill"
	ReadResultTool   = "read_result"
)

// The names of the portal's own calls: what people do to a workspace takes the same lock and order as what models do.
const (
	PortalPutTool    = "portal_put"
	PortalDeleteTool = "portal_delete"
	PortalRevertTool = "portal_revert"
)

// The kinds of step.
const (
	KindRead       = "workspace_read"
	KindWrite      = "workspace_write"
	KindCode       = "code"
	KindArithmetic = "arithmetic"
	KindArtifact   = "artifact"
	KindSkill      = "skill"
	KindResult     = "result"
	KindPerson     = "person"
)

var rows = []Tool{
	{Name: ListFilesTool, Lane: LaneFile, Effect: Read, Kind: KindRead},
	{Name: SearchFilesTool, Lane: LaneFile, Effect: Read, Kind: KindRead},
	{Name: ReadFileTool, Lane: LaneFile, Effect: Read, Kind: KindRead},
	{Name: WriteFileTool, Lane: LaneFile, Effect: Change, Kind: KindWrite},
	{Name: EditFileTool, Lane: LaneFile, Effect: Change, Kind: KindWrite},
	{Name: DeleteFileTool, Lane: LaneFile, Effect: Change, Kind: KindWrite},
	{Name: MoveFileTool, Lane: LaneFile, Effect: Change, Kind: KindWrite},
	{Name: RunCodeTool, Lane: LaneCode, Effect: Change, Kind: KindCode},
	{Name: CalculateTool, Lane: LaneNone, Effect: Read, Kind: KindArithmetic},
	{Name: SaveArtifactTool, Lane: LaneFile, Effect: Change, Kind: KindArtifact},
	{Name: EditArtifactTool, Lane: LaneFile, Effect: Change, Kind: KindArtifact},
	{Name: LoadSkillTool, Lane: LaneNone, Effect: Read, Kind: KindSkill},
	{Name: ReadResultTool, Lane: LaneNone, Effect: Read, Kind: KindResult},
	{Name: PortalPutTool, Lane: LaneFile, Effect: Change, Kind: KindPerson, Portal: true},
	{Name: PortalDeleteTool, Lane: LaneFile, Effect: Change, Kind: KindPerson, Portal: true},
	{Name: PortalRevertTool, Lane: LaneFile, Effect: Change, Kind: KindPerson, Portal: true},
}
