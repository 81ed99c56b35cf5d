// What the viewer uses of three.js; see README.md
export {
  AmbientLight, BoxGeometry, BufferAttribute, BufferGeometry, Color, ConeGeometry, CylinderGeometry,
  DirectionalLight, DynamicDrawUsage, Euler, Fog, GridHelper, Group, HemisphereLight, InstancedMesh, Line,
  LineBasicMaterial, LineDashedMaterial, LineSegments, Matrix4, Mesh, MeshBasicMaterial, MeshStandardMaterial, PCFShadowMap,
  PerspectiveCamera, PlaneGeometry, Points, PointsMaterial, Quaternion, Scene, ShadowMaterial, SphereGeometry,
  Vector3, WebGLRenderer, DoubleSide, ACESFilmicToneMapping, NeutralToneMapping, AxesHelper, TorusGeometry, Vector2, Raycaster, OctahedronGeometry, RingGeometry, Sprite, SpriteMaterial, CanvasTexture
} from "three";
export { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
